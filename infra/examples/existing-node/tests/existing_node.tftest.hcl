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
}

variables {
  package       = "../../tests/package"
  region        = "ap-northeast-2"
  node_ids      = { gpu-1 = "i-0123456789abcdef0" }
  load_balancer = "arn:aws:elasticloadbalancing:ap-northeast-2:000000000000:loadbalancer/app/gpu/0123456789abcdef"
  target_group  = "targetgroup/gpu/0123456789abcdef"
}

run "least" {
  command = apply
  assert {
    condition     = { for name, one in aws_ec2_tag.pool : one.resource_id => "${one.key}=${one.value}" } == { i-0123456789abcdef0 = "reveille:pool=gpu" }
    error_message = "the tag that the rights go by"
  }
}
