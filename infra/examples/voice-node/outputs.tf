output "function_url" {
  description = "Where to POST /wake, GET /status and PUT /leases."
  value       = module.controller.function_url
}

output "private_addresses" {
  description = "Where the nodes answer, on port 8080."
  value       = module.node.private_addresses
}

output "peering_connection_ids" {
  description = "One with another account has to be accepted there."
  value       = module.node.peering_connection_ids
}
