mock_provider "aws" {
  source = "../../tests/mocks"
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
