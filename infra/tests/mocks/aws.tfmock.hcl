# What the mocked provider answers: an account, a region, and ARNs that look like ARNs.

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
mock_data "aws_ssm_parameter" {
  defaults = { insecure_value = "ami-0123456789abcdef0" }
}
mock_data "aws_ami_ids" {
  defaults = { ids = ["ami-0123456789abcdef0"] }
}
mock_data "aws_ec2_instance_type_offerings" {
  defaults = { instance_types = ["g6.xlarge"] }
}
mock_resource "aws_instance" {
  defaults = { id = "i-0123456789abcdef0" }
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
