mock_provider "aws" {
  source = "../../tests/mocks"
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
