locals {
  budget_name     = try(tostring(var.budget.name), "reveille")
  budget_mail     = try([for address in var.budget.mail : tostring(address)], [])
  budget_actual   = try([for percent in var.budget.actual : tonumber(percent)], [50, 80, 100])
  budget_forecast = try([for percent in var.budget.forecast : tonumber(percent)], [100])
  notices = length(local.budget_mail) == 0 ? [] : concat(
    [for percent in local.budget_actual : { type = "ACTUAL", percent = percent }],
    [for percent in local.budget_forecast : { type = "FORECASTED", percent = percent }],
  )
}

# The second line: AWS's own figures, to mail only, hours late. The same as the budget guard would make, so that it finds
# its budget as it wants it; made here so that `destroy` takes it away.
resource "aws_budgets_budget" "pools" {
  count        = var.budget == null ? 0 : 1
  name         = local.budget_name
  budget_type  = "COST"
  time_unit    = "MONTHLY"
  limit_amount = try(tostring(var.budget.amount), "0")
  limit_unit   = "USD"
  tags         = var.tags

  cost_filter {
    name = "TagKeyValue"
    # format, since "$${" would be HCL's escape and not the tag's "$".
    values = [for pool in sort(keys(var.pools)) : format("user:reveille:pool$%s", pool)]
  }

  dynamic "notification" {
    for_each = local.notices
    content {
      comparison_operator        = "GREATER_THAN"
      threshold                  = notification.value.percent
      threshold_type             = "PERCENTAGE"
      notification_type          = notification.value.type
      subscriber_email_addresses = local.budget_mail
    }
  }
}
