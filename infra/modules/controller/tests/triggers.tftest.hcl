# What runs the functions, and who may.

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

run "triggers" {
  command = apply

  # validate takes any text for an expression.
  assert {
    condition = { for key, rule in aws_cloudwatch_event_rule.schedule : key => rule.schedule_expression } == {
      idle-check = "rate(5 minutes)", uptime-alarm = "rate(15 minutes)", budget-guard = "rate(60 minutes)"
    }
    error_message = "the schedules"
  }
  assert {
    condition     = { for key, target in aws_cloudwatch_event_target.schedule : key => target.rule } == { for key in ["idle-check", "uptime-alarm", "budget-guard"] : key => "reveille-${key}" }
    error_message = "each schedule runs its function"
  }
  assert {
    condition     = jsondecode(aws_cloudwatch_event_rule.node_stopped.event_pattern) == { source = ["aws.ec2"], detail-type = ["EC2 Instance State-change Notification"], detail = { state = ["stopped"] } }
    error_message = "the wake function hears of nodes that stopped"
  }
  # Nor does it know a service's name, or miss a permission.
  assert {
    condition = sort([for one in concat(values(aws_lambda_permission.schedule), [aws_lambda_permission.node_stopped], values(aws_lambda_permission.log_group)) : "${one.function_name} ${one.action} ${one.principal}"]) == sort([
      "reveille-idle-check lambda:InvokeFunction events.amazonaws.com",
      "reveille-uptime-alarm lambda:InvokeFunction events.amazonaws.com",
      "reveille-budget-guard lambda:InvokeFunction events.amazonaws.com",
      "reveille-wake lambda:InvokeFunction events.amazonaws.com",
      "reveille-wake lambda:InvokeFunction logs.ap-northeast-2.amazonaws.com",
    ])
    error_message = "who may call which function"
  }
  assert {
    condition     = alltrue([for one in concat(values(aws_lambda_permission.schedule), [aws_lambda_permission.node_stopped], values(aws_lambda_permission.log_group)) : one.source_arn != null])
    error_message = "a service without a source could be sent by any account"
  }
  assert {
    condition     = aws_lambda_permission.log_group["/app/front"].source_arn == "arn:aws:logs:ap-northeast-2:000000000000:log-group:/app/front:*" && aws_lambda_permission.log_group["/app/front"].source_account == "000000000000"
    error_message = "the log group's own permission"
  }
  assert {
    condition     = keys(aws_cloudwatch_log_subscription_filter.wake) == ["/app/front"] && aws_cloudwatch_log_subscription_filter.wake["/app/front"].filter_pattern == "?GET ?POST ?PUT ?PATCH ?DELETE"
    error_message = "each log group of a pool is subscribed"
  }
  assert {
    condition     = aws_cloudwatch_log_subscription_filter.wake["/app/front"].destination_arn == aws_lambda_function.function["wake"].arn
    error_message = "by the wake function"
  }
}

run "the_tick_is_the_setting_and_the_alarm_follows" {
  command = plan
  variables {
    tick_minutes = 10
    idle_minutes = 30
  }
  assert {
    condition     = aws_cloudwatch_event_rule.schedule["idle-check"].schedule_expression == "rate(10 minutes)" && aws_cloudwatch_metric_alarm.no_tick.period == 600
    error_message = "one setting, one tick"
  }
}

run "patterns_and_metrics_of_log_groups" {
  command = plan
  variables {
    pools = {
      voice = { beat = true, log_groups = ["/app/front", "/app/gateway"], wake = { paths = ["/v1/calls"] } }
    }
    subscription_pattern = { "*" = "?GET", "/app/gateway" = "{ $.status = 502 }" }
    request_metrics      = { VoiceRequests = { log_group = "/node/nginx", pattern = "\"POST /v1/calls\"" } }
  }
  assert {
    condition     = { for group, one in aws_cloudwatch_log_subscription_filter.wake : group => one.filter_pattern } == { "/app/front" = "?GET", "/app/gateway" = "{ $.status = 502 }" }
    error_message = "a group's own pattern comes first"
  }
  assert {
    condition     = aws_cloudwatch_log_metric_filter.requests["VoiceRequests"].log_group_name == "/node/nginx" && one(aws_cloudwatch_log_metric_filter.requests["VoiceRequests"].metric_transformation).default_value == "0"
    error_message = "zeros prove that the log is alive"
  }
}
