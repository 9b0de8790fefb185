output "function_url" {
  description = "Where to POST /wake and GET /status."
  value       = module.controller.function_url
}
