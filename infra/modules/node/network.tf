locals {
  zones   = toset([for node in values(var.nodes) : node.zone])
  letters = split("", "abcdefghijklmnop")
  # Where the peering, once accepted here, is ours on both sides.
  own_peers = { for name, peer in var.peers : name => peer if peer.account_id == null && peer.region == null }
  routes_back = merge([for name, peer in local.own_peers : {
    for table in peer.route_table_ids : "${name} ${table}" => { peer = name, table = table }
  }]...)
}

resource "aws_vpc" "node" {
  cidr_block           = var.vpc_cidr
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = merge(var.tags, { Name = var.name })
  # IAM refuses a name that is there: a second apply by mistake makes no network, no peering and no route.
  depends_on = [aws_iam_role.node]
}

resource "aws_subnet" "zone" {
  for_each          = local.zones
  vpc_id            = aws_vpc.node.id
  availability_zone = each.value
  # By the zone's letter, so that another zone moves none.
  cidr_block = cidrsubnet(var.vpc_cidr, 4, index(local.letters, substr(each.value, -1, 1)))
  # Here and not at the instance, where a stopped node would look as if it had to be replaced.
  map_public_ip_on_launch = var.public_address
  tags                    = merge(var.tags, { Name = "${var.name}-${each.value}" })
}

resource "aws_route_table" "node" {
  vpc_id = aws_vpc.node.id
  tags   = merge(var.tags, { Name = var.name })
}

resource "aws_route_table_association" "zone" {
  for_each       = aws_subnet.zone
  subnet_id      = each.value.id
  route_table_id = aws_route_table.node.id
}

resource "aws_internet_gateway" "out" {
  count  = var.public_address ? 1 : 0
  vpc_id = aws_vpc.node.id
  tags   = merge(var.tags, { Name = var.name })
}

resource "aws_route" "out" {
  count                  = var.public_address ? 1 : 0
  route_table_id         = aws_route_table.node.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.out[0].id
}

# The beat's way; free.
resource "aws_vpc_endpoint" "dynamodb" {
  vpc_id            = aws_vpc.node.id
  service_name      = "com.amazonaws.${local.region}.dynamodb"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [aws_route_table.node.id]
  tags              = merge(var.tags, { Name = "${var.name}-dynamodb" })
}

resource "aws_vpc_peering_connection" "peer" {
  for_each      = var.peers
  vpc_id        = aws_vpc.node.id
  peer_vpc_id   = each.value.vpc_id
  peer_owner_id = each.value.account_id
  peer_region   = each.value.region
  auto_accept   = contains(keys(local.own_peers), each.key)
  tags          = merge(var.tags, { Name = "${var.name}-${each.key}" })
}

# Into a request that nobody has accepted yet it leads nowhere.
resource "aws_route" "to_peer" {
  for_each                  = var.peers
  route_table_id            = aws_route_table.node.id
  destination_cidr_block    = each.value.cidr
  vpc_peering_connection_id = aws_vpc_peering_connection.peer[each.key].id
}

resource "aws_route" "from_peer" {
  for_each                  = local.routes_back
  route_table_id            = each.value.table
  destination_cidr_block    = var.vpc_cidr
  vpc_peering_connection_id = aws_vpc_peering_connection.peer[each.value.peer].id
}

resource "aws_security_group" "node" {
  name        = "${var.name}-node"
  description = "Callers from the peers, and nothing else"
  vpc_id      = aws_vpc.node.id
  tags        = merge(var.tags, { Name = "${var.name}-node" })
}

resource "aws_vpc_security_group_ingress_rule" "peer" {
  for_each          = var.peers
  security_group_id = aws_security_group.node.id
  description       = "Calls from ${each.key}"
  ip_protocol       = "tcp"
  from_port         = local.port
  to_port           = local.port
  cidr_ipv4         = each.value.cidr
}

resource "aws_vpc_security_group_egress_rule" "out" {
  security_group_id = aws_security_group.node.id
  description       = "SSM, packages, models, the ledger"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}
