# The rules that need more than one variable, or look into one that is JSON to the functions. Pure: no provider, no
# resource. The functions hold to the same rules at start (shared/src/config); here they are told before anything is made.

locals {
  pools     = try({ for key, value in var.pools : key => value }, {})
  budget    = try({ for key, value in var.budget : key => value }, {})
  prices    = try({ for key, value in var.prices : key => value }, {})
  tokens    = try({ for key, value in var.token_sha256 : key => value }, {})
  word      = "^[A-Za-z0-9._-]{1,64}$"
  balancers = { "AWS/ApplicationELB" = "app", "AWS/NetworkELB" = "net" }

  # Every metric of a pool, wherever it stands.
  metrics = { for name, pool in local.pools : name => concat(
    try([for signal in pool.requests : signal], []),
    try([for signal in pool.open : signal], []),
    try([for signal in pool.requests : signal.alive if try(signal.alive, null) != null], []),
    try([for signal in pool.open : signal.alive if try(signal.alive, null) != null], []),
    try([for log in pool.logs : log.alive if try(log.alive, null) != null], []),
    can(pool.ready.metric) ? [pool.ready] : [],
  ) }
  gauged     = { for name, pool in local.pools : name => try(length(pool.open) > 0, false) || try(tobool(pool.beat), false) }
  signals    = { for name, pool in local.pools : name => local.gauged[name] || try(length(pool.requests) > 0, false) || try(length(pool.logs) > 0, false) }
  calls      = { for name, pool in local.pools : name => try(tostring(pool.calls), "") }
  wakers     = { for name, pool in local.pools : name => try([for group in pool.log_groups : tostring(group)], []) }
  counted    = { for name, pool in local.pools : name => try([for log in pool.logs : tostring(log.group)], []) }
  all_wakers = flatten(values(local.wakers))

  pool_faults = concat(
    length(local.pools) == 0 ? ["pools: write at least one, such as {voice = {beat = true}}; see docs/configuration.md."] : [],
    [for name in keys(local.pools) : "pools: ${jsonencode(name)} is no name: write 1 to 64 letters, digits, '.', '_' and '-'." if !can(regex(local.word, name))],
    flatten([for name, pool in local.pools : [for field in try(keys(pool), []) : "pools.${name}: ${field} is no field: write one of ${join(", ", local.pool_fields)}." if !contains(local.pool_fields, field)]]),
    flatten([for name, pool in local.pools : [for field in try(keys(pool.wake), []) : "pools.${name}.wake: ${field} is no field: write one of ${join(", ", local.filter_fields)}." if !contains(local.filter_fields, field)]]),
    flatten([for name, pool in local.pools : [for log in try([for log in pool.logs : log], []) : [for field in try(keys(log), []) : "pools.${name}.logs: ${field} is no field: write one of ${join(", ", local.log_fields)}." if !contains(local.log_fields, field)]]]),
    flatten([for name, pool in local.pools : [for window in try([for window in pool.warm : window], []) : [for field in try(keys(window), []) : "pools.${name}.warm: ${field} is no field: write one of ${join(", ", local.window_fields)}." if !contains(local.window_fields, field)]]]),
    flatten([for name, metrics in local.metrics : [for metric in metrics : [for field in try(keys(metric), []) : "pools.${name}: ${field} is no field of a metric: write one of ${join(", ", local.signal_fields)}." if !contains(local.signal_fields, field)]]]),
    flatten([for name, metrics in local.metrics : [for metric in metrics : "pools.${name}: a metric needs a namespace and a metric." if !can(length(metric.namespace)) || !can(length(metric.metric))]]),
    [for name, has in local.signals : "pools.${name}: nothing tells that a node is idle: write requests, open, logs or beat = true." if !has],
    [for name, calls in local.calls : "pools.${name}: request counts cannot see a call in progress: write an open signal or beat = true, or calls = \"leased\", or calls = \"unobserved\"." if local.signals[name] && calls == "" && !local.gauged[name]],
    [for name, calls in local.calls : "pools.${name}: calls = \"unobserved\" although open or beat observes them: remove one." if calls == "unobserved" && local.gauged[name]],
    [for name, calls in local.calls : "pools.${name}: calls may only be \"leased\" or \"unobserved\"." if !contains(["", "leased", "unobserved"], calls)],
    [for name, pool in local.pools : "pools.${name}: calls_per_node counts leases: write calls = \"leased\"." if can(pool.calls_per_node + 0) && local.calls[name] != "leased"],
    [for name, pool in local.pools : "pools.${name}: log_groups and wake go together: write both or neither." if(length(local.wakers[name]) == 0) != (try(pool.wake, null) == null)],
    [for name, pool in local.pools : "pools.${name}.wake: write paths, such as [\"/v1/calls\"], each with a leading '/'." if try(pool.wake, null) != null && !try(length(pool.wake.paths) > 0 && alltrue([for path in pool.wake.paths : startswith(path, "/")]), false)],
    [for name, pool in local.pools : "pools.${name}: instance_types are written like g6.xlarge." if !alltrue([for kind in try([for kind in pool.instance_types : kind], []) : can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", kind))])],
  )

  # Field case 19: under a wrong dimension a load balancer gives an empty, valid answer for ever.
  balancer_metrics = flatten([for name, metrics in local.metrics : [for metric in metrics : [for dimension, value in try({ for key, value in metric.dimensions : key => value }, {}) :
    { pool = name, kind = local.balancers[metric.namespace], dimension = dimension, value = try(tostring(value), "") }
  ] if contains(keys(local.balancers), try(tostring(metric.namespace), ""))]])
  proofs = flatten([for name, pool in local.pools : [for signal in concat(try([for signal in pool.requests : signal], []), try([for signal in pool.open : signal], [])) :
    { pool = name, own = basename(signal.dimensions.LoadBalancer), other = basename(signal.alive.dimensions.LoadBalancer) }
    if can("${signal.dimensions.LoadBalancer}${signal.alive.dimensions.LoadBalancer}") && try(signal.namespace == signal.alive.namespace, false)
  ]])
  dimension_faults = distinct(concat(
    [for one in local.balancer_metrics : "pools.${one.pool}: load balancers have no dimension ${one.dimension}: write LoadBalancer, TargetGroup or AvailabilityZone." if !contains(["LoadBalancer", "TargetGroup", "AvailabilityZone"], one.dimension)],
    [for one in local.balancer_metrics : "pools.${one.pool}: the dimension LoadBalancer ${jsonencode(one.value)} gives no figures: write ${one.kind}/NAME/HASH (aws_lb.x.arn_suffix) or the load balancer's ARN." if one.dimension == "LoadBalancer" && !can(regex("^(.*loadbalancer/)?${one.kind}/[^/]+/[^/]+$", one.value))],
    [for one in local.balancer_metrics : "pools.${one.pool}: the dimension TargetGroup ${jsonencode(one.value)} gives no figures: write targetgroup/NAME/HASH (aws_lb_target_group.x.arn_suffix) or the target group's ARN." if one.dimension == "TargetGroup" && !can(regex("targetgroup/[^/]+/[^/]+$", one.value))],
    [for one in local.proofs : "pools.${one.pool}: alive is of another load balancer than its signal, and would vouch for a metric that never has a point: write the same one." if one.own != one.other],
  ))

  # Field case 35: a function that is fed its own log feeds itself.
  log_group_faults = concat(
    [for group in distinct(concat(local.all_wakers, flatten(values(local.counted)))) : "log group ${group} is the controller's own: it would feed itself. Write the log of what takes the calls." if contains(var.own_log_groups, group)],
    [for group in distinct(local.all_wakers) : "log group ${group} is a node's own, and a sleeping node logs nothing: write the log of something that stays up, and this one in logs." if contains(var.node_log_groups, group) || contains(flatten(values(local.counted)), group)],
    [for group in distinct(local.all_wakers) : "log group ${group} is named by two pools: which one does it wake?" if length([for other in local.all_wakers : other if other == group]) > 1],
  )

  # Field case 41: AWS budgets in USD only, and an amount without a currency is a guess.
  budget_actual   = try([for percent in local.budget.actual : tonumber(percent)], [50, 80, 100])
  budget_forecast = try([for percent in local.budget.forecast : tonumber(percent)], [100])
  budget_mail     = try([for address in local.budget.mail : tostring(address)], [])
  budget_faults = var.budget == null ? [
    "budget: the budget guard needs one: write {amount = 200, currency = \"USD\"}."
    ] : concat(
    [for field in keys(local.budget) : "budget: ${field} is no field: write one of ${join(", ", local.budget_fields)}." if !contains(local.budget_fields, field)],
    try(tonumber(local.budget.amount) > 0, false) ? [] : ["budget: write an amount above zero for a month, such as amount = 200."],
    try(local.budget.currency, null) == null ? ["budget: currency is missing: write currency = \"USD\", the only one AWS budgets in."] : [],
    try(local.budget.currency, null) != null && try(local.budget.currency, "") != "USD" ? ["budget: currency ${jsonencode(local.budget.currency)}: AWS budgets in USD only; write the amount in dollars and currency = \"USD\"."] : [],
    contains(["alert", "gate", "stop"], try(local.budget.enforce, "alert")) ? [] : ["budget: write enforce = \"alert\", \"gate\" or \"stop\"."],
    !contains(["gate", "stop"], try(local.budget.enforce, "alert")) || contains(local.budget_actual, 100) ? [] : ["budget: actual has to hold 100 where enforce closes the gate at it."],
    length(local.budget_actual) > 0 ? [] : ["budget: actual has no threshold: nobody would ever be told."],
    alltrue([for percents in [local.budget_actual, local.budget_forecast] : alltrue([for n, percent in percents : percent >= 1 && percent <= 1000 && floor(percent) == percent && (n == 0 ? true : percent > percents[n - 1])])]) ? [] : ["budget: write actual and forecast as whole percentages from 1 to 1000 that rise, such as [50, 80, 100]."],
    length(local.budget_mail) == 0 || length(local.budget_actual) + length(local.budget_forecast) <= 5 ? [] : ["budget: with mail at most 5 thresholds in all: AWS takes no more."],
    length(local.budget_mail) <= 10 && alltrue([for address in local.budget_mail : can(regex("^[^@\\s]+@[^@\\s]+$", address))]) ? [] : ["budget: write at most 10 mail addresses."],
    can(regex("^[^:\\\\]{1,100}$", try(local.budget.name, "reveille"))) ? [] : ["budget: write a name of 1 to 100 characters, without ':' and '\\'."],
  )

  price_faults = concat(
    var.region == null || contains(local.price_regions, coalesce(var.region, "-")) || length(local.prices) > 0 ? [] : ["prices: region ${var.region} is not in the price table (${join(", ", local.price_regions)}): write the prices of your nodes, such as {\"g6.xlarge\" = \"0.8\"}."],
    [for item, price in local.prices : "prices: write a price above zero for ${item}; one of nothing would silence every alert." if !try(tonumber(price) > 0, false)],
  )

  access_faults = concat(
    var.access == "token" && length(local.tokens) == 0 ? ["token_sha256: access = \"token\" needs one: write {NAME = \"SHA-256 of the token, 64 hexadecimal digits\"}."] : [],
    var.access != "token" && var.token_sha256 != null ? ["token_sha256: is read with access = \"token\" only: write that, or leave it out."] : [],
    [for name, hash in local.tokens : "token_sha256: write a word of 1 to 32 letters, digits, '.', '_' and '-' as each name, and 64 hexadecimal digits as each hash." if !can(regex("^[A-Za-z0-9._-]{1,32}$", name)) || !can(regex("^[0-9a-fA-F]{64}$", hash))],
    [for hash in distinct([for hash in values(local.tokens) : lower(hash)]) : "token_sha256: a hash is that of an empty text; was the variable set?" if hash == sha256("")],
    length(distinct([for hash in values(local.tokens) : lower(hash)])) == length(local.tokens) ? [] : ["token_sha256: two names have one hash: write another token for each."],
  )

  time_faults = concat(
    var.minutes.idle >= var.minutes.tick + 5 ? [] : ["idle_minutes: write at least tick_minutes and 5: two readings have to fit in."],
    var.minutes.prewarm == null ? [] : var.minutes.prewarm >= var.minutes.tick + 5 ? [] : ["prewarm_minutes: write at least tick_minutes and 5: two readings have to fit in."],
    var.minutes.ready * 60 > var.boot_seconds ? [] : ["ready_minutes: write more than boot_seconds: every boot would be stopped before its end."],
    var.default_pool == null ? [] : contains(keys(local.pools), var.default_pool) ? [] : ["default_pool: ${var.default_pool} is none of the pools: write one of ${join(", ", keys(local.pools))}."],
  )
}

output "faults" {
  description = "Everything that is wrong with the settings, each with what to write."
  value       = concat(local.pool_faults, local.dimension_faults, local.log_group_faults, local.budget_faults, local.price_faults, local.access_faults, local.time_faults)
}
