# Who is told of what, and who may tell.

mock_provider "aws" {
  source = "../../tests/mocks"
}

variables {
  package = "../../tests/package"
  budget  = { amount = 200, currency = "USD", mail = ["ops@example.com"] }
  pools = {
    voice = {
      beat       = true
      log_groups = ["/app/front"]
      wake       = { paths = ["/v1/calls"] }
    }
  }
  watched_nodes = { voice = "i-0123456789abcdef0" }
}

run "budget" {
  command = plan
  assert {
    condition     = jsonencode([for one in aws_budgets_budget.pools[0].cost_filter : one.values]) == jsonencode([["user:reveille:pool$voice"]])
    error_message = "the tag as Budgets writes it"
  }
  assert {
    condition     = aws_budgets_budget.pools[0].limit_unit == "USD" && tonumber(aws_budgets_budget.pools[0].limit_amount) == 200 && aws_budgets_budget.pools[0].name == "reveille"
    error_message = "the amount in dollars"
  }
  assert {
    condition     = sort([for one in aws_budgets_budget.pools[0].notification : "${one.notification_type} ${one.threshold} ${one.comparison_operator}"]) == sort(["ACTUAL 50 GREATER_THAN", "ACTUAL 80 GREATER_THAN", "ACTUAL 100 GREATER_THAN", "FORECASTED 100 GREATER_THAN"])
    error_message = "the notifications that the guard would make"
  }
}

run "case_39_cloudwatch_and_budgets_may_publish" {
  command = apply
  variables { encrypt_topic = true }
  assert {
    condition = alltrue([for policy in [aws_sns_topic_policy.alerts.policy, aws_kms_key.topic[0].policy] :
      { for one in jsondecode(policy).Statement : one.Principal.Service => one.Condition.StringEquals["aws:SourceAccount"] if can(one.Principal.Service) } == { "cloudwatch.amazonaws.com" = "000000000000", "budgets.amazonaws.com" = "000000000000" }
    ])
    error_message = "both publishers, for this account, on the topic and on its key"
  }
  assert {
    condition     = [for one in jsondecode(aws_sns_topic_policy.alerts.policy).Statement : one.Action] == ["sns:Publish", "sns:Publish", "sns:Publish"]
    error_message = "and nothing but publish"
  }
  assert {
    condition     = aws_sns_topic.alerts.kms_master_key_id == aws_kms_key.topic[0].arn
    error_message = "the topic has the key"
  }
  assert {
    condition     = alltrue([for one in aws_iam_role_policy.function : length([for statement in jsondecode(one.policy).Statement : statement if statement.Sid == "EncryptWhatIsTold"]) == 1])
    error_message = "each function may use the key"
  }
}
