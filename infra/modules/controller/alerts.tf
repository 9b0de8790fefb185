locals {
  # Services that publish, each for this account only (field case 39: one that is missing is silent for ever).
  publishers = {
    CloudWatch = "cloudwatch.amazonaws.com"
    Budgets    = "budgets.amazonaws.com"
  }
  this_account = { StringEquals = { "aws:SourceAccount" = local.account } }
  root         = "arn:${local.partition}:iam::${local.account}:root"
}

resource "aws_sns_topic" "alerts" {
  name              = "${var.name}-alerts"
  kms_master_key_id = one(aws_kms_key.topic[*].arn)
  tags              = var.tags
  depends_on        = [aws_iam_role.function]
}

resource "aws_sns_topic_policy" "alerts" {
  arn = aws_sns_topic.alerts.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([{
      # The functions' roles, as far as their own policies let them.
      Sid       = "Account"
      Effect    = "Allow"
      Principal = { AWS = local.root }
      Action    = "sns:Publish"
      Resource  = local.topic_arn
      }], [for name, service in local.publishers : {
      Sid       = name
      Effect    = "Allow"
      Principal = { Service = service }
      Action    = "sns:Publish"
      Resource  = local.topic_arn
      Condition = local.this_account
    }])
  })
}

resource "aws_kms_key" "topic" {
  count               = var.encrypt_topic ? 1 : 0
  description         = "Reveille: the alerts of ${var.name}"
  enable_key_rotation = true
  # The shortest that KMS takes: nothing is stored under it for longer than a message's way.
  deletion_window_in_days = 7
  tags                    = var.tags
  depends_on              = [aws_iam_role.function]
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([{
      Sid       = "Account"
      Effect    = "Allow"
      Principal = { AWS = local.root }
      Action    = "kms:*"
      Resource  = "*"
      }], [for name, service in local.publishers : {
      Sid       = name
      Effect    = "Allow"
      Principal = { Service = service }
      Action    = ["kms:GenerateDataKey*", "kms:Decrypt"]
      Resource  = "*"
      Condition = local.this_account
    }])
  })
}

resource "aws_sns_topic_subscription" "mail" {
  for_each  = var.mail
  topic_arn = aws_sns_topic.alerts.arn
  protocol  = "email"
  endpoint  = each.value
}
