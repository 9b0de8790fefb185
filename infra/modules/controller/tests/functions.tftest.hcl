# The functions, what they are built of and what they are told.

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
