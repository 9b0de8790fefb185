mock_provider "aws" {
  source = "../../tests/mocks"
}

variables {
  pool          = "voice"
  table_name    = "reveille-ledger"
  ami_parameter = "/voice/ami"
  nodes         = { "1" = { zone = "ap-northeast-2a" } }
  engine        = { command = "/opt/engine --listen 127.0.0.1:$PORT" }
}

run "a_node" {
  command = apply
  assert {
    condition     = aws_instance.node["1"].ami == "ami-0123456789abcdef0" && aws_instance.node["1"].instance_type == "g6.xlarge" && aws_instance.node["1"].tags == tomap({ Name = "voice-1", "reveille:pool" = "voice" })
    error_message = "the parameter's AMI, the type and the pool's tag"
  }
  assert {
    condition     = one(aws_instance.node["1"].metadata_options).http_tokens == "required" && one(aws_instance.node["1"].metadata_options).http_put_response_hop_limit == 1
    error_message = "IMDSv2 only"
  }
  assert {
    condition     = jsonencode([for disk in aws_instance.node["1"].root_block_device : [disk.volume_type, disk.throughput, disk.iops, disk.encrypted]]) == jsonencode([["gp3", 250, 4000, true]])
    error_message = "the disk that loads a model fast, encrypted"
  }
  assert {
    condition     = aws_instance.node["1"].instance_initiated_shutdown_behavior == "stop"
    error_message = "a shutdown loses nothing"
  }
  assert {
    condition = jsondecode(aws_iam_role_policy.beat["1"].policy).Statement == [{
      Sid      = "WriteOwnBeat", Effect = "Allow", Action = "dynamodb:PutItem"
      Resource = "arn:aws:dynamodb:ap-northeast-2:000000000000:table/reveille-ledger"
      Condition = {
        "ForAllValues:StringEquals" = { "dynamodb:LeadingKeys" = ["beat#i-0123456789abcdef0"] }
        Null                        = { "dynamodb:LeadingKeys" = "false" }
      }
    }]
    error_message = aws_iam_role_policy.beat["1"].policy
  }
  assert {
    condition     = jsondecode(aws_iam_role.node["1"].assume_role_policy).Statement[0].Principal.Service == "ec2.amazonaws.com" && aws_iam_role_policy_attachment.ssm["1"].policy_arn == "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    error_message = "EC2 takes the role, and a person gets in by SSM"
  }
  assert {
    condition     = aws_vpc_endpoint.dynamodb.service_name == "com.amazonaws.ap-northeast-2.dynamodb" && aws_vpc_endpoint.dynamodb.vpc_endpoint_type == "Gateway"
    error_message = "the beat's way is free"
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.peer) == 0 && aws_route.out[0].destination_cidr_block == "0.0.0.0/0"
    error_message = "nothing comes in"
  }
}

run "several_nodes_across_zones" {
  command = plan
  variables {
    nodes = { "1" = { zone = "ap-northeast-2a" }, "2" = { zone = "ap-northeast-2c", instance_type = "g6.2xlarge" }, "3" = { zone = "ap-northeast-2a" } }
  }
  assert {
    condition     = { for zone, one in aws_subnet.zone : zone => one.cidr_block } == { ap-northeast-2a = "10.90.0.0/24", ap-northeast-2c = "10.90.2.0/24" }
    error_message = "a subnet a zone, by its letter"
  }
  assert {
    condition     = { for name, one in aws_instance.node : name => one.instance_type } == { "1" = "g6.xlarge", "2" = "g6.2xlarge", "3" = "g6.xlarge" }
    error_message = "each its type"
  }
  assert {
    condition     = sort([for one in aws_iam_role.node : one.name]) == tolist(["voice-1", "voice-2", "voice-3"])
    error_message = "each its role"
  }
}

run "without_a_public_address" {
  command = plan
  variables { public_address = false }
  assert {
    condition     = length(aws_internet_gateway.out) + length(aws_route.out) == 0 && !aws_subnet.zone["ap-northeast-2a"].map_public_ip_on_launch
    error_message = "no way out and none in"
  }
}

run "peers_both_ways_and_by_request" {
  command = apply
  variables {
    peers = {
      prod    = { vpc_id = "vpc-0000000a", cidr = "10.0.0.0/16", route_table_ids = ["rtb-0000000a", "rtb-0000000b"] }
      partner = { vpc_id = "vpc-0000000c", cidr = "10.20.0.0/16", account_id = "111111111111" }
    }
  }
  assert {
    condition     = { for name, one in aws_vpc_peering_connection.peer : name => one.auto_accept } == { prod = true, partner = false }
    error_message = "another account's owner accepts himself"
  }
  assert {
    condition     = { for name, one in aws_route.to_peer : name => one.destination_cidr_block } == { prod = "10.0.0.0/16", partner = "10.20.0.0/16" }
    error_message = "there"
  }
  assert {
    condition     = sort([for one in aws_route.from_peer : "${one.route_table_id} ${one.destination_cidr_block}"]) == tolist(["rtb-0000000a 10.90.0.0/20", "rtb-0000000b 10.90.0.0/20"])
    error_message = "and back"
  }
  assert {
    condition     = alltrue([for one in aws_route.from_peer : one.vpc_peering_connection_id == aws_vpc_peering_connection.peer["prod"].id])
    error_message = "by the same peering"
  }
  assert {
    condition     = { for name, one in aws_vpc_security_group_ingress_rule.peer : name => [one.cidr_ipv4, one.from_port, one.to_port] } == { prod = ["10.0.0.0/16", 8080, 8080], partner = ["10.20.0.0/16", 8080, 8080] }
    error_message = "to the one port"
  }
}

run "the_first_boot" {
  command = plan
  variables {
    engine    = { command = "/opt/engine --listen 127.0.0.1:$PORT", slots = 4, health = "/v1/health", user = "engine" }
    use_paths = ["/v1/"]
    beat      = { url = "https://example.com/reveille-beat", sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }
  }
  assert {
    condition     = startswith(local.user_data, "#cloud-config\n{") && length(local.user_data) < 16384
    error_message = "EC2 takes 16 KiB: ${length(local.user_data)}"
  }
  assert {
    condition     = [for port in [8001, 8002, 8003, 8004] : strcontains(local.boot_files["/etc/nginx/conf.d/reveille-engines.conf"].content, "server 127.0.0.1:${port} ")] == [true, true, true, true] && strcontains(local.boot_files["/etc/nginx/conf.d/reveille-engines.conf"].content, "least_conn;")
    error_message = "four slots behind one address"
  }
  assert {
    condition     = strcontains(local.boot_files["/etc/nginx/conf.d/reveille-engines.conf"].content, "proxy_pass http://reveille_engines/v1/health;") && strcontains(local.boot_files["/etc/nginx/conf.d/reveille.conf"].content, "proxy_pass http://reveille_engines/v1/health;")
    error_message = "readiness is the engines' own"
  }
  assert {
    condition     = contains(local.boot_commands, "systemctl enable --now reveille-engine@8001.service reveille-engine@8002.service reveille-engine@8003.service reveille-engine@8004.service") && contains(local.boot_commands, "systemctl enable --now reveille-beat.timer")
    error_message = "slots and beat start at each boot"
  }
  assert {
    condition     = strcontains(local.boot_files["/etc/systemd/system/reveille-engine@.service"].content, "User=engine\n") && strcontains(local.boot_files["/usr/local/bin/reveille-engine"].content, "exec /opt/engine --listen 127.0.0.1:$PORT\n")
    error_message = "the command as its user"
  }
  assert {
    condition     = strcontains(local.boot_files["/etc/reveille/beat.env"].content, "REVEILLE_BEAT_LINES='{\"paths\":[\"/v1/\"]}'\n") && strcontains(local.boot_files["/etc/reveille/beat.env"].content, "REVEILLE_TABLE=reveille-ledger\n")
    error_message = local.boot_files["/etc/reveille/beat.env"].content
  }
  assert {
    condition     = strcontains(local.boot_commands[1], "sha256sum -c - && install")
    error_message = "a program of another hash is not installed"
  }
}

run "a_customer_key_is_handed_to_the_controller" {
  command = plan
  variables { volume_kms_key_arn = "arn:aws:kms:ap-northeast-2:000000000000:key/01234567-89ab-cdef-0123-456789abcdef" }
  assert {
    condition     = output.volume_kms_key_arns == tolist([var.volume_kms_key_arn]) && one(aws_instance.node["1"].root_block_device).kms_key_id == var.volume_kms_key_arn
    error_message = "case 03: a start needs a grant on it"
  }
}

run "words_that_are_none" {
  command = plan
  variables {
    name               = "Voice"
    pool               = "a b"
    ami_parameter      = "ami-0123456789abcdef0"
    vpc_cidr           = "10.0.0.0/28"
    volume_kms_key_arn = "alias/volumes"
    use_paths          = ["v1"]
    engine             = { command = "x", slots = 17 }
    beat               = { url = "http://example.com/beat", sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }
    nodes              = { "1" = { zone = "a" } }
    volume             = { iops = 60000 }
  }
  expect_failures = [var.name, var.pool, var.ami_parameter, var.vpc_cidr, var.volume_kms_key_arn, var.use_paths, var.engine, var.beat, var.nodes, var.volume]
}

run "other_words_that_are_none" {
  command = plan
  variables {
    engine = { command = "x", health = "health" }
    beat   = { url = "https://example.com/beat", sha256 = "9f86" }
    nodes  = { "1" = { zone = "ap-northeast-2a", instance_type = "g6" } }
    volume = { mibps = 1500, iops = 4000 }
    peers  = { prod = { vpc_id = "vpc-0000000a", cidr = "10.0.0.0" } }
  }
  expect_failures = [var.engine, var.beat, var.nodes, var.volume, var.peers]
}

run "no_node" {
  command = plan
  variables { nodes = {} }
  expect_failures = [var.nodes]
}

run "a_peer_that_overlaps" {
  command = plan
  variables { peers = { prod = { vpc_id = "vpc-0000000a", cidr = "10.0.0.0/8", route_table_ids = ["rtb-0000000a"] } } }
  expect_failures = [var.peers]
}

run "a_peer_without_a_way_back" {
  command = plan
  variables { peers = { prod = { vpc_id = "vpc-0000000a", cidr = "10.0.0.0/16" } } }
  expect_failures = [var.peers]
}

run "route_tables_of_another_account" {
  command = plan
  variables { peers = { prod = { vpc_id = "vpc-0000000a", cidr = "10.0.0.0/16", account_id = "111111111111", route_table_ids = ["rtb-0000000a"] } } }
  expect_failures = [var.peers]
}

run "an_ami_that_does_not_exist" {
  command = plan
  override_data {
    target = data.aws_ami_ids.named
    values = { ids = [] }
  }
  expect_failures = [data.aws_ami_ids.named]
}

run "a_type_that_the_zone_has_not" {
  command = plan
  override_data {
    target = data.aws_ec2_instance_type_offerings.node
    values = { instance_types = [] }
  }
  expect_failures = [data.aws_ec2_instance_type_offerings.node]
}
