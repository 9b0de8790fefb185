# Each function's rights, action by action: one more or one less is a decision, and is made here too.

mock_provider "aws" {
  source = "../../tests/mocks"
}

variables {
  package = "../../tests/package"
  budget  = { amount = 200, currency = "USD" }
  pools = {
    voice = {
      beat           = true
      log_groups     = ["/app/front"]
      wake           = { paths = ["/v1/calls"] }
      logs           = [{ group = "/node/nginx", lines = { paths = ["/v1/"] } }]
      instance_types = ["g6.xlarge", "g5.xlarge"]
      ready          = { namespace = "AWS/ApplicationELB", metric = "HealthyHostCount", dimensions = { LoadBalancer = "app/voice/0123456789abcdef" } }
    }
    batch = { beat = true, ready = "checks" }
  }
  volume_kms_key_arns = ["arn:aws:kms:ap-northeast-2:000000000000:key/01234567-89ab-cdef-0123-456789abcdef"]
}

run "every_action_of_every_function" {
  command = plan
  assert {
    condition = jsonencode({ for key, one in aws_iam_role_policy.function : key => sort(flatten([for statement in jsondecode(one.policy).Statement : statement.Action])) }) == jsonencode({
      wake = [
        "cloudwatch:GetMetricData",
        "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem",
        "ec2:DescribeInstanceStatus", "ec2:DescribeInstances", "ec2:ModifyInstanceAttribute", "ec2:StartInstances",
        "kms:CreateGrant", "logs:CreateLogStream", "logs:PutLogEvents", "sns:Publish", "sqs:SendMessage",
      ]
      idle-check = [
        "cloudwatch:GetMetricData",
        "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem",
        "ec2:DescribeInstanceStatus", "ec2:DescribeInstances", "ec2:ModifyInstanceAttribute", "ec2:StartInstances", "ec2:StopInstances",
        "kms:CreateGrant", "logs:CreateLogStream", "logs:FilterLogEvents", "logs:PutLogEvents", "sns:Publish",
      ]
      uptime-alarm = [
        "cloudwatch:GetMetricData",
        "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem",
        "ec2:DescribeInstances", "logs:CreateLogStream", "logs:PutLogEvents", "sns:Publish",
      ]
      budget-guard = [
        "budgets:ModifyBudget", "budgets:ViewBudget",
        "dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem",
        "ec2:DescribeInstances", "ec2:DescribeVolumes", "logs:CreateLogStream", "logs:PutLogEvents", "sns:Publish",
      ]
    })
    error_message = jsonencode({ for key, one in aws_iam_role_policy.function : key => sort(flatten([for statement in jsondecode(one.policy).Statement : statement.Action])) })
  }
  assert {
    condition = toset(flatten([for one in aws_iam_role_policy.function : [for statement in jsondecode(one.policy).Statement : statement.Action if statement.Resource == "*"]])) == toset([
      "ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "ec2:DescribeVolumes", "cloudwatch:GetMetricData",
    ])
    error_message = "everything else names its resource"
  }
  assert {
    condition = alltrue(flatten([for one in aws_iam_role_policy.function : [for statement in jsondecode(one.policy).Statement :
      statement.Resource == "arn:aws:ec2:ap-northeast-2:000000000000:instance/*" && statement.Condition.StringEquals["aws:ResourceTag/reveille:pool"] == ["batch", "voice"]
      if length(setintersection(flatten([statement.Action]), ["ec2:StartInstances", "ec2:StopInstances", "ec2:ModifyInstanceAttribute"])) > 0
    ]]))
    error_message = "only nodes of these pools are started, stopped and changed"
  }
  assert {
    condition = alltrue(flatten([for one in aws_iam_role_policy.function : [for statement in jsondecode(one.policy).Statement :
      statement.Condition.StringEquals["ec2:Attribute/InstanceType"] == ["g5.xlarge", "g6.xlarge"] if contains(flatten([statement.Action]), "ec2:ModifyInstanceAttribute")
    ]]))
    error_message = "who may change user data owns the node"
  }
  assert {
    condition = alltrue(flatten([for one in aws_iam_role_policy.function : [for statement in jsondecode(one.policy).Statement :
      statement.Resource == "arn:aws:dynamodb:ap-northeast-2:000000000000:table/reveille-ledger" if anytrue([for action in flatten([statement.Action]) : startswith(action, "dynamodb:")])
    ]]))
    error_message = "the one table"
  }
  assert {
    condition = { for key, one in aws_iam_role_policy.function : key => flatten([for statement in jsondecode(one.policy).Statement : statement.Resource if startswith(flatten([statement.Action])[0], "logs:")]) } == {
      wake         = ["arn:aws:logs:ap-northeast-2:000000000000:log-group:/aws/lambda/reveille-wake:*"]
      idle-check   = ["arn:aws:logs:ap-northeast-2:000000000000:log-group:/aws/lambda/reveille-idle-check:*", "arn:aws:logs:ap-northeast-2:000000000000:log-group:/node/nginx:*"]
      uptime-alarm = ["arn:aws:logs:ap-northeast-2:000000000000:log-group:/aws/lambda/reveille-uptime-alarm:*"]
      budget-guard = ["arn:aws:logs:ap-northeast-2:000000000000:log-group:/aws/lambda/reveille-budget-guard:*"]
    }
    error_message = "its own log, and the groups that are counted"
  }
  assert {
    condition     = [for one in aws_iam_role.function : jsondecode(one.assume_role_policy).Statement] == [for n in range(4) : [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }]]
    error_message = "only Lambda takes the roles"
  }
}

run "case_03_a_start_may_grant_the_volume_s_key" {
  command = plan
  assert {
    condition = jsonencode({ for key, one in aws_iam_role_policy.function : key => [for statement in jsondecode(one.policy).Statement : [statement.Resource, statement.Condition] if statement.Sid == "GrantKeysOfVolumes"] }) == jsonencode({
      for key in ["wake", "idle-check", "uptime-alarm", "budget-guard"] : key => [for one in var.volume_kms_key_arns : [
        [one], { Bool = { "kms:GrantIsForAWSResource" = "true" }, StringEquals = { "kms:ViaService" = "ec2.ap-northeast-2.amazonaws.com" } },
      ] if contains(["wake", "idle-check"], key)]
    })
    error_message = "whoever starts, for these keys, by EC2 only"
  }
}

run "what_is_not_configured_is_not_allowed" {
  command = plan
  variables {
    pools               = { voice = { beat = true } }
    volume_kms_key_arns = []
  }
  assert {
    condition = length(setintersection(flatten([for one in aws_iam_role_policy.function : [for statement in jsondecode(one.policy).Statement : statement.Action]]), [
      "ec2:ModifyInstanceAttribute", "ec2:DescribeInstanceStatus", "kms:CreateGrant", "logs:FilterLogEvents",
    ])) == 0
    error_message = "no types, no checks, no keys, no counted logs"
  }
  assert {
    condition     = [for key, one in aws_iam_role_policy.function : key if strcontains(one.policy, "cloudwatch:GetMetricData")] == ["uptime-alarm"]
    error_message = "nodes that are seen by beats alone have no metric that is read"
  }
}

run "each_signal_has_its_right" {
  command = plan
  variables {
    pools = {
      metrics = { requests = [{ namespace = "App", metric = "Requests" }], calls = "unobserved" }
      counted = { logs = [{ group = "/node/nginx", lines = { paths = ["/v1/"] } }], calls = "unobserved" }
    }
    volume_kms_key_arns = []
  }
  assert {
    condition     = [for key, one in aws_iam_role_policy.function : key if strcontains(one.policy, "cloudwatch:GetMetricData")] == ["idle-check", "uptime-alarm"]
    error_message = "requests are a metric; a wake reads none unless readiness is one"
  }
  assert {
    condition     = [for key, one in aws_iam_role_policy.function : key if strcontains(one.policy, "ec2:DescribeInstanceStatus")] == ["idle-check", "wake"]
    error_message = "without a beat and a word, readiness is EC2's checks"
  }
}
