output "instance_ids" {
  description = "The nodes, for the controller's watched_nodes."
  value       = { for name, node in aws_instance.node : name => node.id }
}

output "private_addresses" {
  description = "Where the nodes answer, on port 8080; they stay over a stop."
  value       = { for name, node in aws_instance.node : name => node.private_ip }
}

output "volume_kms_key_arns" {
  description = "For the controller's volume_kms_key_arns: a start needs a grant on them."
  value       = var.volume_kms_key_arn == null ? [] : [var.volume_kms_key_arn]
}

output "vpc_id" {
  description = "The nodes' own VPC."
  value       = aws_vpc.node.id
}

output "peering_connection_ids" {
  description = "The peerings; one with another account or region has to be accepted there."
  value       = { for name, peer in aws_vpc_peering_connection.peer : name => peer.id }
}
