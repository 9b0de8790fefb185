locals {
  # As shared/src/telemetry.rs writes them: custom metrics without dimensions, so one controller to an account and region.
  namespace = "Reveille"
  heartbeat = "Ticks"
  to_people = [aws_sns_topic.alerts.arn]
  # Not sure to run twice within a quarter of an hour, so that one failure has to do.
  seldom = [for key, minutes in local.schedules : key if 2 * minutes > 15]
}

# Three ticks without one that did its job: throttled, disabled, without rights or dead, whatever the cause.
resource "aws_cloudwatch_metric_alarm" "no_tick" {
  alarm_name          = "${var.name}-no-tick"
  alarm_description   = "No idle check did its job for ${3 * var.tick_minutes} minutes: nodes that are idle are not stopped. Look at the log /aws/lambda/${local.function_names["idle-check"]}."
  namespace           = local.namespace
  metric_name         = local.heartbeat
  statistic           = "Sum"
  period              = var.tick_minutes * 60
  evaluation_periods  = 3
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  treat_missing_data  = "breaching"
  alarm_actions       = local.to_people
  ok_actions          = local.to_people
  tags                = var.tags
}

# The second line: EC2's own free metric has one sample a minute while a node runs.
resource "aws_cloudwatch_metric_alarm" "uptime" {
  for_each            = var.watched_nodes
  alarm_name          = "${var.name}-uptime-${each.key}"
  alarm_description   = "Node ${each.key} (${each.value}) ran for more than ${var.uptime_hours} of 24 hours. It tells once, and again only after a day below that; the uptime alarm function tells each day."
  namespace           = "AWS/EC2"
  metric_name         = "StatusCheckFailed"
  dimensions          = { InstanceId = each.value }
  statistic           = "SampleCount"
  period              = 86400
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.uptime_hours * 60
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to_people
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "errors" {
  for_each            = var.lean ? {} : local.function_names
  alarm_name          = "${var.name}-errors-${each.key}"
  alarm_description   = "The function ${each.key} failed${contains(local.seldom, each.key) ? "" : " twice within a quarter of an hour"}. Look at the log /aws/lambda/${each.value}."
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = each.value }
  statistic           = "Sum"
  period              = max(900, 60 * lookup(local.schedules, each.key, 0))
  evaluation_periods  = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = contains(local.seldom, each.key) ? 1 : 2
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to_people
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "failed_events" {
  count               = var.lean ? 0 : 1
  alarm_name          = "${var.name}-failed-events"
  alarm_description   = "A log batch or state change failed three times and lies in the queue ${var.name}-failed-events: a wake may be lost."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.failed_events.name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to_people
  tags                = var.tags
}
