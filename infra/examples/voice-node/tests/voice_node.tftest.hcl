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
  mock_data "aws_ssm_parameter" {
    defaults = { insecure_value = "ami-0123456789abcdef0" }
  }
  mock_data "aws_ami_ids" {
    defaults = { ids = ["ami-0123456789abcdef0"] }
  }
  mock_data "aws_ec2_instance_type_offerings" {
    defaults = { instance_types = ["g6.xlarge"] }
  }
  mock_data "aws_cloudwatch_log_groups" {
    defaults = { log_group_names = ["/app/front"] }
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
}

variables {
  package        = "../../tests/package"
  engine_command = "/opt/engine"
}

run "least" {
  command = apply
  assert {
    condition     = keys(output.private_addresses) == ["1"]
    error_message = "one node"
  }
}

run "all" {
  command = apply
  variables {
    zones           = ["ap-northeast-2a", "ap-northeast-2c"]
    front_log_group = "/app/front"
    mail            = ["ops@example.com"]
    url_callers     = ["arn:aws:iam::000000000000:role/app"]
    peers = {
      staging = { vpc_id = "vpc-0000000a", cidr = "10.0.0.0/16", route_table_ids = ["rtb-0000000a"] }
      prod    = { vpc_id = "vpc-0000000b", cidr = "10.1.0.0/16", account_id = "111111111111" }
    }
  }
  assert {
    condition     = keys(output.private_addresses) == ["1", "2"] && keys(output.peering_connection_ids) == ["prod", "staging"]
    error_message = "a node a zone, and both peers"
  }
}
