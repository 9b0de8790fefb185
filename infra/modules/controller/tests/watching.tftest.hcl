# What tells when the functions do not.

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

run "watching" {
  command = apply
  assert {
    condition = {
      for one in [aws_cloudwatch_metric_alarm.no_tick] : one.metric_name => [one.namespace, one.statistic, one.period, one.evaluation_periods, one.comparison_operator, one.threshold, one.treat_missing_data]
    } == { Ticks = ["Reveille", "Sum", 300, 3, "LessThanThreshold", 1, "breaching"] }
    error_message = "no tick for a quarter of an hour is told, also where nothing is written at all"
  }
  assert {
    condition = [
      for one in aws_cloudwatch_metric_alarm.uptime : [one.namespace, one.metric_name, one.dimensions.InstanceId, one.statistic, one.period, one.comparison_operator, one.threshold, one.treat_missing_data]
    ] == [["AWS/EC2", "StatusCheckFailed", "i-0123456789abcdef0", "SampleCount", 86400, "GreaterThanThreshold", 1200, "notBreaching"]]
    error_message = "20 hours are 1200 samples"
  }
  assert {
    condition     = { for key, one in aws_cloudwatch_metric_alarm.errors : key => one.dimensions.FunctionName } == { for key in ["budget-guard", "idle-check", "uptime-alarm", "wake"] : key => "reveille-${key}" }
    error_message = "each function's errors"
  }
  assert {
    condition     = { for key, one in aws_cloudwatch_metric_alarm.errors : key => [one.period, one.threshold] } == { budget-guard = [3600, 1], idle-check = [900, 2], uptime-alarm = [900, 1], wake = [900, 2] }
    error_message = "two failures are asked for only where a period has two runs"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.failed_events[0].dimensions.QueueName == "reveille-failed-events" && aws_cloudwatch_metric_alarm.failed_events[0].threshold == 0
    error_message = "dead letters"
  }
  assert {
    condition     = alltrue([for one in concat([aws_cloudwatch_metric_alarm.no_tick], values(aws_cloudwatch_metric_alarm.uptime), values(aws_cloudwatch_metric_alarm.errors), aws_cloudwatch_metric_alarm.failed_events) : one.alarm_actions == toset([aws_sns_topic.alerts.arn])])
    error_message = "every alarm tells people"
  }
  assert {
    condition     = alltrue([for field in ["inputs.launched_at", "reason", "stops_not_before", "inputs.own_estimate"] : strcontains(aws_cloudwatch_dashboard.nodes[0].dashboard_body, field)])
    error_message = "why is it on, since when, when will it stop, what did it cost"
  }
}

run "lean" {
  command = plan
  variables { lean = true }
  assert {
    condition     = length(aws_cloudwatch_dashboard.nodes) + length(aws_cloudwatch_metric_alarm.errors) + length(aws_cloudwatch_metric_alarm.failed_events) == 0
    error_message = "few"
  }
  assert {
    condition     = length(aws_cloudwatch_metric_alarm.uptime) == 1 && aws_cloudwatch_metric_alarm.no_tick.metric_name == "Ticks"
    error_message = "but these two"
  }
}
