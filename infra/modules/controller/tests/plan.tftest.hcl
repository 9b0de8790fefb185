# What a plan of the module holds, with a mocked provider: no account, no network.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "000000000000" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { id = "ap-northeast-2", name = "ap-northeast-2" }
  }
  mock_data "aws_cloudwatch_log_groups" {
    defaults = { log_group_names = ["/app/front", "/app/gateway"] }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::000000000000:role/mocked" }
  }
  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:ap-northeast-2:000000000000:function:mocked" }
  }
  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:ap-northeast-2:000000000000:rule/mocked" }
  }
  mock_resource "aws_cloudwatch_metric_alarm" {
    defaults = { arn = "arn:aws:cloudwatch:ap-northeast-2:000000000000:alarm:mocked" }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:ap-northeast-2:000000000000:reveille-alerts" }
  }
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:ap-northeast-2:000000000000:reveille-failed-events" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:ap-northeast-2:000000000000:key/mocked" }
  }
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

run "functions" {
  command = apply

  assert {
    condition     = alltrue([for one in aws_lambda_function.function : one.runtime == "provided.al2023" && one.handler == "bootstrap"])
    error_message = "the functions are native programs on provided.al2023"
  }
  assert {
    condition     = alltrue([for one in aws_lambda_function.function : one.architectures == tolist(["x86_64"])])
    error_message = "the architecture is the variable's"
  }
  assert {
    condition     = alltrue([for one in aws_lambda_function.function : one.reserved_concurrent_executions == -1])
    error_message = "no concurrency is reserved by default: small accounts refuse it"
  }
  assert {
    condition     = alltrue([for key, one in aws_lambda_function.function : one.source_code_hash == filebase64sha256("../../tests/package/${key}/bootstrap.zip")])
    error_message = "an upgrade is noticed by the zip's own hash"
  }
  assert {
    condition     = alltrue([for key, one in aws_lambda_function.function : one.timeout > 25 && one.timeout <= 60])
    error_message = "a run has half a minute, and no call is in flight for long"
  }
  assert {
    condition     = { for key, one in aws_cloudwatch_log_group.function : key => [one.name, one.retention_in_days] } == { for key in ["budget-guard", "idle-check", "uptime-alarm", "wake"] : key => ["/aws/lambda/reveille-${key}", 30] }
    error_message = "each function has its log group, with an end"
  }
  assert {
    condition = { for one in values(aws_lambda_function_event_invoke_config.scheduled) : one.function_name => one.maximum_retry_attempts } == {
      reveille-idle-check = 0, reveille-uptime-alarm = 0, reveille-budget-guard = 0
    }
    error_message = "case 36: a scheduled run is not repeated"
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.wake.maximum_retry_attempts == 2 && aws_lambda_function_event_invoke_config.wake.maximum_event_age_in_seconds == 1800
    error_message = "an event is tried again, for as long as it can wake anything"
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.wake.destination_config[0].on_failure[0].destination == aws_sqs_queue.failed_events.arn
    error_message = "an event that failed is kept"
  }
}

run "environment" {
  command = apply

  assert {
    condition = { for name, value in aws_lambda_function.function["wake"].environment[0].variables : name => value if !contains(["REVEILLE_POOLS", "REVEILLE_BUDGET"], name) } == {
      REVEILLE_ACCESS                  = "iam"
      REVEILLE_ALERT_TOPIC_ARN         = "arn:aws:sns:ap-northeast-2:000000000000:reveille-alerts"
      REVEILLE_BOOT_SECONDS            = "60"
      REVEILLE_CALLER_WAKES_PER_MINUTE = "600"
      REVEILLE_FORCE_STOP_MINUTES      = "10"
      REVEILLE_GRACE_MINUTES           = "10"
      REVEILLE_IDLE_MINUTES            = "30"
      REVEILLE_READY_MINUTES           = "10"
      REVEILLE_TABLE                   = "reveille-ledger"
      REVEILLE_TICK_MINUTES            = "5"
      REVEILLE_UPTIME_HOURS            = "20"
      REVEILLE_WAKES_PER_MINUTE        = "1200"
      REVEILLE_WISH_MINUTES            = "60"
      REVEILLE_ZONE                    = "UTC"
    }
    error_message = jsonencode(aws_lambda_function.function["wake"].environment[0].variables)
  }
  assert {
    condition     = jsondecode(aws_lambda_function.function["idle-check"].environment[0].variables.REVEILLE_POOLS) == { voice = { beat = true, log_groups = ["/app/front"], wake = { paths = ["/v1/calls"] } } }
    error_message = "the pools are handed on as they are written"
  }
  assert {
    condition     = !anytrue([for key in ["idle-check", "uptime-alarm", "budget-guard"] : contains(keys(aws_lambda_function.function[key].environment[0].variables), "REVEILLE_ACCESS")])
    error_message = "only the wake function knows who may call"
  }
  assert {
    condition     = aws_dynamodb_table.ledger.name == "reveille-ledger" && aws_dynamodb_table.ledger.hash_key == "pk" && aws_dynamodb_table.ledger.range_key == "sk" && one(aws_dynamodb_table.ledger.ttl).attribute_name == "expires_at" && one(aws_dynamodb_table.ledger.point_in_time_recovery).enabled
    error_message = "the ledger has its keys, its expiry and its recovery"
  }
}

run "case_19_an_arn_is_cut_to_what_the_metrics_call_it" {
  command = plan
  variables {
    pools = { voice = { beat = true, open = [{
      namespace  = "AWS/ApplicationELB", metric = "ActiveConnectionCount"
      dimensions = { LoadBalancer = "arn:aws:elasticloadbalancing:ap-northeast-2:000000000000:loadbalancer/app/my-alb/0123456789abcdef" }
      alive = { namespace = "AWS/ApplicationELB", metric = "HealthyHostCount", dimensions = {
        LoadBalancer = "app/my-alb/0123456789abcdef"
        TargetGroup  = "arn:aws:elasticloadbalancing:ap-northeast-2:000000000000:targetgroup/my-tg/0123456789abcdef"
      } }
    }] } }
  }
  assert {
    condition = jsondecode(aws_lambda_function.function["idle-check"].environment[0].variables.REVEILLE_POOLS).voice.open[0] == {
      namespace  = "AWS/ApplicationELB", metric = "ActiveConnectionCount"
      dimensions = { LoadBalancer = "app/my-alb/0123456789abcdef" }
      alive      = { namespace = "AWS/ApplicationELB", metric = "HealthyHostCount", dimensions = { LoadBalancer = "app/my-alb/0123456789abcdef", TargetGroup = "targetgroup/my-tg/0123456789abcdef" } }
    }
    error_message = "an ARN gives an empty, valid answer for ever"
  }
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

run "the_url_lets_in_named_roles" {
  command = plan
  variables {
    url_callers  = ["arn:aws:iam::000000000000:role/app"]
    cors_origins = ["https://app.example.com"]
  }
  assert {
    condition     = aws_lambda_function_url.wake[0].authorization_type == "AWS_IAM" && one(aws_lambda_function_url.wake[0].cors).allow_origins == toset(["https://app.example.com"])
    error_message = "Lambda verifies the caller"
  }
  assert {
    condition     = [for one in aws_lambda_permission.url : [one.action, one.principal, one.function_url_auth_type]] == [["lambda:InvokeFunctionUrl", "arn:aws:iam::000000000000:role/app", "AWS_IAM"]]
    error_message = "the first permission"
  }
  assert {
    condition = values(jsondecode(aws_cloudformation_stack.url[0].template_body).Resources)[*].Properties == [{
      FunctionName = "reveille-wake", Action = "lambda:InvokeFunction", Principal = "arn:aws:iam::000000000000:role/app", InvokedViaFunctionUrl = true
    }]
    error_message = "the second, by the URL only"
  }
}

run "the_url_with_tokens_is_open_to_all_by_the_url_only" {
  command = plan
  variables {
    access       = "token"
    token_sha256 = { app = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }
  }
  assert {
    condition     = aws_lambda_function_url.wake[0].authorization_type == "NONE" && length(aws_lambda_function_url.wake[0].cors) == 0
    error_message = "the function verifies the caller"
  }
  assert {
    condition     = [for one in aws_lambda_permission.url : [one.action, one.principal, one.function_url_auth_type]] == [["lambda:InvokeFunctionUrl", "*", "NONE"]]
    error_message = "the first permission"
  }
  assert {
    condition     = values(jsondecode(aws_cloudformation_stack.url[0].template_body).Resources)[*].Properties == [{ FunctionName = "reveille-wake", Action = "lambda:InvokeFunction", Principal = "*", InvokedViaFunctionUrl = true }]
    error_message = "the second, by the URL only: else everybody could call the function itself"
  }
  assert {
    condition     = length([for one in concat(values(aws_lambda_permission.url), values(aws_lambda_permission.schedule)) : one if one.principal == "*" && one.action == "lambda:InvokeFunction"]) == 0
    error_message = "nobody but the URL may call for everybody"
  }
}

run "no_url" {
  command = plan
  variables { function_url = false }
  assert {
    condition     = length(aws_lambda_function_url.wake) + length(aws_lambda_permission.url) + length(aws_cloudformation_stack.url) == 0
    error_message = "no URL, no permission"
  }
}

run "watching" {
  command = apply
  assert {
    condition = {
      for one in [aws_cloudwatch_metric_alarm.no_tick] : one.metric_name => [one.namespace, one.dimensions.Function, one.statistic, one.period, one.evaluation_periods, one.comparison_operator, one.threshold, one.treat_missing_data]
    } == { Heartbeat = ["Reveille", "idle-check", "Sum", 300, 3, "LessThanThreshold", 1, "breaching"] }
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
    condition     = length(aws_cloudwatch_metric_alarm.uptime) == 1 && aws_cloudwatch_metric_alarm.no_tick.metric_name == "Heartbeat"
    error_message = "but these two"
  }
}

run "zips_in_s3" {
  command = plan
  variables { package = "s3://artefacts/reveille/1.0" }
  override_data {
    target = data.aws_s3_object.manifest[0]
    values = { body = "{\"architecture\": \"x86_64\", \"functions\": {\"wake\": {\"sha256\": \"d2FrZQ==\"}, \"idle-check\": {\"sha256\": \"aWRsZQ==\"}, \"uptime-alarm\": {\"sha256\": \"dXB0aW1l\"}, \"budget-guard\": {\"sha256\": \"YnVkZ2V0\"}}}" }
  }
  assert {
    condition     = "${aws_lambda_function.function["wake"].s3_bucket} ${aws_lambda_function.function["wake"].s3_key} ${aws_lambda_function.function["wake"].source_code_hash}" == "artefacts reveille/1.0/wake/bootstrap.zip d2FrZQ==" && aws_lambda_function.function["wake"].filename == null
    error_message = "by bucket and key, with the manifest's hash"
  }
}
