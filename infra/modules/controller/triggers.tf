locals {
  schedules = {
    idle-check   = var.tick_minutes
    uptime-alarm = 15
    budget-guard = 60
  }
}

# Each is an at-least-once hint to look; none carries anything.
resource "aws_cloudwatch_event_rule" "schedule" {
  for_each    = local.schedules
  name        = local.function_names[each.key]
  description = "Reveille: runs ${each.key} every ${each.value} minutes"
  # EventBridge knows "1 hour" and refuses "1 hours"; minutes above one are always a plural.
  schedule_expression = "rate(${each.value} minutes)"
  tags                = var.tags
  depends_on          = [aws_iam_role.function]
}

resource "aws_cloudwatch_event_target" "schedule" {
  for_each = local.schedules
  rule     = aws_cloudwatch_event_rule.schedule[each.key].name
  arn      = aws_lambda_function.function[each.key].arn

  # A tick that could not be delivered for five minutes is replaced by the next.
  retry_policy {
    maximum_event_age_in_seconds = 300
    maximum_retry_attempts       = 2
  }

  # So that `destroy` silences the budget guard before it takes the budget, which the guard would make again.
  depends_on = [aws_budgets_budget.pools]
}

resource "aws_lambda_permission" "schedule" {
  for_each      = local.schedules
  statement_id  = "schedule"
  function_name = aws_lambda_function.function[each.key].function_name
  action        = "lambda:InvokeFunction"
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.schedule[each.key].arn
}

# "stopped" of any instance of the account: the event carries no tags. The wake function looks for itself.
resource "aws_cloudwatch_event_rule" "node_stopped" {
  name        = "${var.name}-node-stopped"
  description = "Reveille: a node has stopped, and may be wanted again"
  event_pattern = jsonencode({
    source      = ["aws.ec2"]
    detail-type = ["EC2 Instance State-change Notification"]
    detail      = { state = ["stopped"] }
  })
  tags       = var.tags
  depends_on = [aws_iam_role.function]
}

resource "aws_cloudwatch_event_target" "node_stopped" {
  rule = aws_cloudwatch_event_rule.node_stopped.name
  arn  = aws_lambda_function.function["wake"].arn
}

resource "aws_lambda_permission" "node_stopped" {
  statement_id  = "node-stopped"
  function_name = aws_lambda_function.function["wake"].function_name
  action        = "lambda:InvokeFunction"
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.node_stopped.arn
}

# Looked for at plan time: a subscription to a log group that is not there fails only after everything else is made.
data "aws_cloudwatch_log_groups" "wake" {
  for_each              = local.wake_log_groups
  log_group_name_prefix = each.value

  lifecycle {
    postcondition {
      condition     = contains(self.log_group_names, each.value)
      error_message = "Log group ${each.value} is not in ${local.region}: create it first, correct the name in log_groups, or, where this configuration makes it, give this module depends_on."
    }
  }
}

resource "aws_lambda_permission" "log_group" {
  for_each      = local.wake_log_groups
  statement_id  = "log-${substr(sha256(each.value), 0, 16)}"
  function_name = aws_lambda_function.function["wake"].function_name
  action        = "lambda:InvokeFunction"
  # The region's own form is read as the same service, and is what the older regions documented.
  principal      = "logs.${local.region}.amazonaws.com"
  source_arn     = "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:${each.value}:*"
  source_account = local.account
}

# AWS takes two a log group. A group that has its two already is refused at apply, and named by the address of the resource
# in the error; no data source tells of them before.
resource "aws_cloudwatch_log_subscription_filter" "wake" {
  for_each        = local.wake_log_groups
  name            = "${var.name}-wake"
  log_group_name  = each.value
  filter_pattern  = lookup(var.subscription_pattern, each.value, var.subscription_pattern["*"])
  destination_arn = aws_lambda_function.function["wake"].arn

  # CloudWatch Logs tries the permission when the filter is made.
  depends_on = [aws_lambda_permission.log_group, data.aws_cloudwatch_log_groups.wake]
}

resource "aws_cloudwatch_log_metric_filter" "requests" {
  for_each       = var.request_metrics
  name           = "${var.name}-${each.key}"
  log_group_name = each.value.log_group
  pattern        = each.value.pattern

  metric_transformation {
    namespace = local.namespace
    name      = each.key
    value     = "1"
    unit      = "Count"
    # Zeros wherever other lines arrive: they prove that the source is alive.
    default_value = "0"
  }

  depends_on = [aws_iam_role.function]
}
