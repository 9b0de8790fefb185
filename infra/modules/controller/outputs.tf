output "table_name" {
  description = "The ledger's table, for the nodes' beats."
  value       = local.table_name
}

output "table_arn" {
  description = "Its ARN."
  value       = local.table_arn
}

output "topic_arn" {
  description = "Where people are told."
  value       = aws_sns_topic.alerts.arn
}

output "function_url" {
  description = "Where to POST /wake, GET /status and PUT /leases; null without a URL."
  value       = one(aws_lambda_function_url.wake[*].function_url)
}

output "function_names" {
  description = "The functions."
  value       = local.function_names
}

output "failed_events_queue" {
  description = "Where events lie that failed three times."
  value       = aws_sqs_queue.failed_events.url
}

output "caller_policy" {
  description = "A policy for roles of this account that may call the URL, where they are not in url_callers."
  value = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect    = "Allow"
        Action    = "lambda:InvokeFunctionUrl"
        Resource  = "arn:${local.partition}:lambda:${local.region}:${local.account}:function:${local.function_names["wake"]}"
        Condition = { StringEquals = { "lambda:FunctionUrlAuthType" = "AWS_IAM" } }
      },
      {
        Effect    = "Allow"
        Action    = "lambda:InvokeFunction"
        Resource  = "arn:${local.partition}:lambda:${local.region}:${local.account}:function:${local.function_names["wake"]}"
        Condition = { Bool = { "lambda:InvokedViaFunctionUrl" = "true" } }
      },
    ]
  })
}
