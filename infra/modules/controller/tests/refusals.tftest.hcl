# Wrong values are refused at plan time. What the rules of more than one variable say is held in rules/tests.

mock_provider "aws" {
  source = "../../tests/mocks"
}

variables {
  package = "../../tests/package"
  budget  = { amount = 200, currency = "USD" }
  pools   = { voice = { beat = true } }
}

run "numbers_below" {
  command = plan
  variables {
    idle_minutes            = 9
    prewarm_minutes         = 9
    tick_minutes            = 4
    grace_minutes           = -1
    wish_minutes            = 4
    boot_seconds            = 4
    ready_minutes           = 2
    caller_wakes_per_minute = 0
    wakes_per_minute        = 0
    force_stop_minutes      = 4
    uptime_hours            = 0
    reserved_concurrency    = 1
    log_retention_days      = 0
  }
  expect_failures = [
    var.idle_minutes, var.prewarm_minutes, var.tick_minutes, var.grace_minutes, var.wish_minutes, var.boot_seconds, var.ready_minutes,
    var.caller_wakes_per_minute, var.wakes_per_minute, var.force_stop_minutes, var.uptime_hours, var.reserved_concurrency, var.log_retention_days,
  ]
}

run "numbers_above" {
  command = plan
  variables {
    idle_minutes            = 1441
    prewarm_minutes         = 1441
    tick_minutes            = 61
    grace_minutes           = 121
    wish_minutes            = 1441
    boot_seconds            = 1801
    ready_minutes           = 61
    caller_wakes_per_minute = 100001
    wakes_per_minute        = 100001
    force_stop_minutes      = 121
    uptime_hours            = 24
  }
  expect_failures = [
    var.idle_minutes, var.prewarm_minutes, var.tick_minutes, var.grace_minutes, var.wish_minutes, var.boot_seconds, var.ready_minutes,
    var.caller_wakes_per_minute, var.wakes_per_minute, var.force_stop_minutes, var.uptime_hours,
  ]
}

run "numbers_that_are_not_whole" {
  command = plan
  variables {
    idle_minutes            = 30.5
    prewarm_minutes         = 30.5
    tick_minutes            = 5.5
    grace_minutes           = 0.5
    wish_minutes            = 60.5
    boot_seconds            = 60.5
    ready_minutes           = 10.5
    caller_wakes_per_minute = 1.5
    wakes_per_minute        = 1.5
    force_stop_minutes      = 10.5
    uptime_hours            = 20.5
    reserved_concurrency    = 2.5
  }
  expect_failures = [
    var.idle_minutes, var.prewarm_minutes, var.tick_minutes, var.grace_minutes, var.wish_minutes, var.boot_seconds, var.ready_minutes,
    var.caller_wakes_per_minute, var.wakes_per_minute, var.force_stop_minutes, var.uptime_hours, var.reserved_concurrency,
  ]
}

run "numbers_at_their_lower_ends" {
  command = plan
  variables {
    idle_minutes            = 10
    prewarm_minutes         = 10
    tick_minutes            = 5
    grace_minutes           = 0
    wish_minutes            = 5
    boot_seconds            = 5
    ready_minutes           = 3
    caller_wakes_per_minute = 1
    wakes_per_minute        = 1
    force_stop_minutes      = 5
    uptime_hours            = 1
    reserved_concurrency    = 2
  }
  assert {
    condition     = aws_lambda_function.function["wake"].reserved_concurrent_executions == 2 && aws_lambda_function.function["idle-check"].reserved_concurrent_executions == -1
    error_message = "of the wake function only"
  }
}

run "numbers_at_their_upper_ends" {
  command = plan
  variables {
    idle_minutes            = 1440
    prewarm_minutes         = 1440
    tick_minutes            = 60
    grace_minutes           = 120
    wish_minutes            = 1440
    boot_seconds            = 1800
    ready_minutes           = 60
    caller_wakes_per_minute = 100000
    wakes_per_minute        = 100000
    force_stop_minutes      = 120
    uptime_hours            = 23
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.wake.maximum_event_age_in_seconds == 21600
    error_message = "six hours are what Lambda takes at most"
  }
}

run "case_26_a_zone_that_is_none" {
  command = plan
  variables { zone = "KST" }
  expect_failures = [var.zone]
}

run "a_zone" {
  command = plan
  variables { zone = "Asia/Seoul" }
  assert {
    condition     = aws_lambda_function.function["uptime-alarm"].environment[0].variables.REVEILLE_ZONE == "Asia/Seoul"
    error_message = "the zone is handed on"
  }
}

run "words_and_addresses" {
  command = plan
  variables {
    name                 = "Reveille!"
    package              = "https://example.com/reveille.zip"
    architecture         = "x86-64"
    access               = "none"
    subscription_pattern = { "/app/front" = "?GET" }
    cors_origins         = ["*"]
    mail                 = ["ops"]
    volume_kms_key_arns  = ["alias/volumes"]
    watched_nodes        = { voice = "voice-1" }
  }
  expect_failures = [
    var.name, var.package, var.architecture, var.access, var.subscription_pattern, var.cors_origins, var.mail,
    var.volume_kms_key_arns, var.watched_nodes,
  ]
}

# These look at other variables too, and are asked only where those are right.
run "callers_and_metrics" {
  command = plan
  variables {
    url_callers     = ["*"]
    request_metrics = { "voice requests" = { log_group = "/app/front", pattern = "" } }
  }
  expect_failures = [var.url_callers, var.request_metrics]
}

run "callers_beside_tokens" {
  command = plan
  variables {
    access       = "token"
    token_sha256 = { app = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }
    url_callers  = ["arn:aws:iam::000000000000:role/app"]
  }
  expect_failures = [var.url_callers]
}

run "case_35_our_own_log_is_not_counted" {
  command = plan
  variables {
    request_metrics = { Requests = { log_group = "/aws/lambda/reveille-wake", pattern = "" } }
  }
  expect_failures = [var.request_metrics]
}

run "case_35_our_own_log_wakes_nothing" {
  command = plan
  variables {
    name  = "gpu"
    pools = { voice = { beat = true, log_groups = ["/aws/lambda/gpu-idle-check"], wake = { paths = ["/"] } } }
  }
  override_data {
    target = data.aws_cloudwatch_log_groups.wake
    values = { log_group_names = ["/aws/lambda/gpu-idle-check"] }
  }
  expect_failures = [terraform_data.settings]
}

run "case_41_a_budget_in_euro" {
  command = plan
  variables { budget = { amount = 20, currency = "EUR" } }
  expect_failures = [terraform_data.settings]
}

run "more_than_an_environment_holds" {
  command = plan
  variables {
    pools = { for n in range(60) : "a-pool-with-a-rather-long-name-${n}" => { beat = true, calls = "leased", calls_per_node = 4 } }
  }
  expect_failures = [terraform_data.settings]
}

run "a_log_group_that_is_not_there" {
  command = plan
  variables {
    pools = { voice = { beat = true, log_groups = ["/app/fron"], wake = { paths = ["/v1/calls"] } } }
  }
  expect_failures = [data.aws_cloudwatch_log_groups.wake]
}

run "zips_of_another_architecture" {
  command = plan
  variables { architecture = "arm64" }
  expect_failures = [aws_lambda_function.function]
}

run "zips_that_are_not_those_of_the_manifest" {
  command = plan
  variables { package = "../../tests/package-stale" }
  expect_failures = [aws_lambda_function.function]
}

run "a_manifest_in_s3_that_is_not_text" {
  command = plan
  variables { package = "s3://artefacts/reveille/1.0" }
  override_data {
    target = data.aws_s3_object.manifest[0]
    values = { body = null }
  }
  expect_failures = [data.aws_s3_object.manifest]
}
