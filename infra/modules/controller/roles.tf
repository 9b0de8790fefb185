# One role a function. What each calls is read off shared/src/aws and shared/src/run; `*` stands only where IAM knows no
# resource for the action, and the reason beside it.

locals {
  pool_tag = { "aws:ResourceTag/reveille:pool" = sort(keys(var.pools)) }
  nodes    = "arn:${local.partition}:ec2:${local.region}:${local.account}:instance/*"

  statements = {
    look = [{
      # EC2's describe actions know no resource.
      Sid      = "SeeNodes"
      Effect   = "Allow"
      Action   = ["ec2:DescribeInstances"]
      Resource = "*"
    }]
    readiness = [for key in ["checks"] : {
      # Neither does this one.
      Sid      = "SeeStatusChecks"
      Effect   = "Allow"
      Action   = ["ec2:DescribeInstanceStatus"]
      Resource = "*"
    } if local.reads_checks]
    disks = [{
      # Nor this one.
      Sid      = "SeeVolumes"
      Effect   = "Allow"
      Action   = ["ec2:DescribeVolumes"]
      Resource = "*"
    }]
    metrics = [{
      # CloudWatch knows no resource for reading metrics.
      Sid      = "ReadMetrics"
      Effect   = "Allow"
      Action   = ["cloudwatch:GetMetricData"]
      Resource = "*"
    }]
    start = [{
      Sid       = "StartOwnNodes"
      Effect    = "Allow"
      Action    = ["ec2:StartInstances"]
      Resource  = local.nodes
      Condition = { StringEquals = local.pool_tag }
    }]
    stop = [{
      Sid       = "StopOwnNodes"
      Effect    = "Allow"
      Action    = ["ec2:StopInstances"]
      Resource  = local.nodes
      Condition = { StringEquals = local.pool_tag }
    }]
    # Only the type, and only to those of the pools: who may change a node's user data owns the node.
    change = [for key in ["type"] : {
      Sid       = "ChangeTypeOfOwnNodes"
      Effect    = "Allow"
      Action    = ["ec2:ModifyInstanceAttribute"]
      Resource  = local.nodes
      Condition = { StringEquals = merge(local.pool_tag, { "ec2:Attribute/InstanceType" = local.other_types }) }
    } if length(local.other_types) > 0]
    # Field case 03: without this grant EC2 accepts a START and the node falls back to stopped.
    grant = [for key in ["keys"] : {
      Sid      = "GrantKeysOfVolumes"
      Effect   = "Allow"
      Action   = ["kms:CreateGrant"]
      Resource = sort(var.volume_kms_key_arns)
      Condition = {
        Bool         = { "kms:GrantIsForAWSResource" = "true" }
        StringEquals = { "kms:ViaService" = "ec2.${local.region}.amazonaws.com" }
      }
    } if length(var.volume_kms_key_arns) > 0]
    tell = concat([{
      Sid      = "TellPeople"
      Effect   = "Allow"
      Action   = ["sns:Publish"]
      Resource = local.topic_arn
      }], [for key in aws_kms_key.topic : {
      Sid      = "EncryptWhatIsTold"
      Effect   = "Allow"
      Action   = ["kms:GenerateDataKey", "kms:Decrypt"]
      Resource = key.arn
    }])
    ledger = [{
      Sid      = "ReadAndWriteLedger"
      Effect   = "Allow"
      Action   = ["dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
      Resource = local.table_arn
    }]
    history = [{
      Sid      = "ReadHistory"
      Effect   = "Allow"
      Action   = ["dynamodb:Query"]
      Resource = local.table_arn
    }]
    note = [{
      Sid      = "ReadBudgetNote"
      Effect   = "Allow"
      Action   = ["dynamodb:GetItem"]
      Resource = local.table_arn
    }]
    count = [for key in ["lines"] : {
      Sid      = "CountLogLines"
      Effect   = "Allow"
      Action   = ["logs:FilterLogEvents"]
      Resource = [for group in sort(local.counted_log_groups) : "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:${group}:*"]
    } if length(local.counted_log_groups) > 0]
    budget = [{
      # ModifyBudget is what IAM calls creating and updating the budget and its notifications.
      Sid      = "KeepBudget"
      Effect   = "Allow"
      Action   = ["budgets:ViewBudget", "budgets:ModifyBudget"]
      Resource = "arn:${local.partition}:budgets::${local.account}:budget/${local.budget_name}"
    }]
    fail = [{
      Sid      = "KeepFailedEvents"
      Effect   = "Allow"
      Action   = ["sqs:SendMessage"]
      Resource = local.queue_arn
    }]
  }

  every = ["look", "ledger", "tell"]
  rights = {
    wake         = concat(local.every, ["readiness", "start", "change", "grant", "fail"], local.reads_ready_metric ? ["metrics"] : [])
    idle-check   = concat(local.every, ["readiness", "count", "start", "stop", "change", "grant"], local.reads_metrics ? ["metrics"] : [])
    uptime-alarm = concat(local.every, ["metrics", "history"])
    budget-guard = concat(local.every, ["disks", "history", "note", "budget"])
  }
  own_log = { for key, name in local.function_names : key => [{
    Sid      = "WriteOwnLog"
    Effect   = "Allow"
    Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    Resource = "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/aws/lambda/${name}:*"
  }] }
}

# Made before whatever AWS would overwrite without a word: topic, queue, rules, filters, alarms, dashboard. IAM refuses a name
# that is there, in whatever region, so that a second apply by mistake, from another checkout or state, ends here. Else it would
# take those over, and its `destroy` would take them away from the first.
resource "aws_iam_role" "function" {
  for_each    = local.function_names
  name        = each.value
  description = "Reveille: what the function ${each.key} may do"
  tags        = var.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "function" {
  for_each = local.rights
  name     = "reveille"
  role     = aws_iam_role.function[each.key].name
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = concat(local.own_log[each.key], flatten([for right in each.value : local.statements[right]]))
  })
}
