locals {
  # What each function needs of Lambda. The time-outs bound how long a call may be in flight, which the ledger's claims
  # reckon with; the sum of the SDK's own time-outs stays below them.
  functions = {
    wake         = { timeout = 30, memory = 256, what = "starts nodes for pre-warms, leases and request-log lines" }
    idle-check   = { timeout = 60, memory = 128, what = "each tick: stops what is idle, starts what an unmet wake wants" }
    uptime-alarm = { timeout = 60, memory = 128, what = "tells of nodes that were up for too long in a day" }
    budget-guard = { timeout = 60, memory = 128, what = "keeps the budget, its alerts and the gate" }
  }

  access_settings = ["REVEILLE_ACCESS", "REVEILLE_TOKEN_SHA256"]
  environment = merge(
    { for name, value in local.settings : name => value if value != null },
    { REVEILLE_TABLE = local.table_name, REVEILLE_ALERT_TOPIC_ARN = local.topic_arn },
  )
  # Only the wake function has callers, so only it knows the tokens' hashes.
  environments = { for key in keys(local.functions) : key => {
    for name, value in local.environment : name => value if key == "wake" || !contains(local.access_settings, name)
  } }
  environment_bytes = sum([for name, value in local.environment : length(name) + length(value)])

  # s3://BUCKET/PREFIX, else a folder.
  in_s3    = startswith(var.package, "s3://")
  bucket   = local.in_s3 ? split("/", trimprefix(var.package, "s3://"))[0] : null
  prefix   = local.in_s3 ? trimprefix(var.package, "s3://${local.bucket}/") : null
  manifest = jsondecode(local.in_s3 ? one(data.aws_s3_object.manifest[*].body) : file("${var.package}/manifest.json"))
  # What is in the folder now; in S3 the manifest's word is taken.
  hashes = { for key in keys(local.functions) : key => local.in_s3 ? local.manifest.functions[key].sha256 : filebase64sha256("${var.package}/${key}/bootstrap.zip") }
}

data "aws_s3_object" "manifest" {
  count  = local.in_s3 ? 1 : 0
  bucket = local.bucket
  key    = "${local.prefix}/manifest.json"

  lifecycle {
    postcondition {
      condition     = self.body != null
      error_message = "${var.package}/manifest.json is not stored as text: upload it with the content type application/json, as `aws s3 cp` does."
    }
  }
}

resource "aws_cloudwatch_log_group" "function" {
  for_each          = local.function_names
  name              = "/aws/lambda/${each.value}"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_lambda_function" "function" {
  for_each         = local.functions
  function_name    = local.function_names[each.key]
  description      = "Reveille: ${each.value.what}"
  role             = aws_iam_role.function[each.key].arn
  runtime          = "provided.al2023"
  architectures    = [var.architecture]
  handler          = "bootstrap"
  filename         = local.in_s3 ? null : "${var.package}/${each.key}/bootstrap.zip"
  s3_bucket        = local.bucket
  s3_key           = local.in_s3 ? "${local.prefix}/${each.key}/bootstrap.zip" : null
  source_code_hash = local.hashes[each.key]
  timeout          = each.value.timeout
  memory_size      = each.value.memory
  tags             = var.tags

  reserved_concurrent_executions = each.key == "wake" && var.reserved_concurrency != null ? var.reserved_concurrency : -1

  environment {
    variables = local.environments[each.key]
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.function[each.key].name
  }

  lifecycle {
    precondition {
      condition     = local.manifest.architecture == var.architecture
      error_message = "The zips in ${var.package} are built for ${local.manifest.architecture}: write architecture = \"${local.manifest.architecture}\", or build them for ${var.architecture}."
    }
    precondition {
      condition     = local.hashes[each.key] == local.manifest.functions[each.key].sha256
      error_message = "${var.package}/${each.key}/bootstrap.zip is not the one that its manifest.json names: run `make package` again."
    }
  }

  # Without its rights the first run would fail.
  depends_on = [aws_iam_role_policy.function, terraform_data.settings]
}

# A scheduled run is not repeated: the next tick is the retry (field case 36). An event is, and one that failed three
# times is kept for a person.
resource "aws_lambda_function_event_invoke_config" "scheduled" {
  for_each                     = local.schedules
  function_name                = aws_lambda_function.function[each.key].function_name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 300
}

resource "aws_lambda_function_event_invoke_config" "wake" {
  function_name          = aws_lambda_function.function["wake"].function_name
  maximum_retry_attempts = 2
  # A line older than the idle time wakes nothing.
  maximum_event_age_in_seconds = min(21600, var.idle_minutes * 60)

  destination_config {
    on_failure {
      destination = aws_sqs_queue.failed_events.arn
    }
  }
}

resource "aws_sqs_queue" "failed_events" {
  name                      = "${var.name}-failed-events"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = var.tags
  depends_on                = [aws_iam_role.function]
}
