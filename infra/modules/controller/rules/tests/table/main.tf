# One row a wrong setting, and what is said of it; "" where nothing is wrong.

variable "rows" { type = any }

module "rules" {
  source   = "../.."
  for_each = var.rows

  pools           = try(each.value.pools, { voice = { beat = true } })
  default_pool    = try(each.value.default_pool, null)
  access          = try(each.value.access, "iam")
  token_sha256    = try(each.value.token_sha256, null)
  budget          = try(each.value.budget, { amount = 200, currency = "USD" })
  prices          = try(each.value.prices, null)
  region          = try(each.value.region, "ap-northeast-2")
  minutes         = merge({ tick = 5, idle = 30, prewarm = null, ready = 10 }, try(each.value.minutes, {}))
  boot_seconds    = try(each.value.boot_seconds, 60)
  own_log_groups  = ["/aws/lambda/reveille-wake", "/aws/lambda/reveille-idle-check"]
  node_log_groups = ["/node/nginx"]
}

output "missed" {
  description = "The rows of which something else was said."
  value = { for name, row in var.rows : name => module.rules[name].faults if row.says == "" ? length(module.rules[name].faults) > 0 : !(
    length(module.rules[name].faults) == 1 && anytrue([for fault in module.rules[name].faults : strcontains(fault, row.says)])
  ) }
}
