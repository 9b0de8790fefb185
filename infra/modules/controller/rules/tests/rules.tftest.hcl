# Every rule is broken by one row and says what to write; a rule that no row breaks is found by make infra-test, which
# takes each out of a copy.

run "pools" {
  command = plan
  module { source = "./tests/table" }
  variables {
    rows = {
      "a beat is enough"         = { pools = { voice = { beat = true } }, says = "" }
      "no pool"                  = { pools = {}, says = "write at least one" }
      "not a map"                = { pools = "voice", says = "write at least one" }
      "a name with a blank"      = { pools = { "a b" = { beat = true } }, says = "\"a b\" is no name" }
      "a name that is too long"  = { pools = { (join("", [for n in range(65) : "a"])) = { beat = true } }, says = "is no name" }
      "a field misspelt"         = { pools = { v = { beat = true, request = [] } }, says = "pools.v: request is no field" }
      "a field of wake misspelt" = { pools = { v = { beat = true, log_groups = ["/app"], wake = { paths = ["/"], method = ["GET"] } } }, says = "pools.v.wake: method is no field" }
      "a field of logs misspelt" = { pools = { v = { calls = "unobserved", logs = [{ group = "/a", lines = { paths = ["/"] }, live = null }] } }, says = "pools.v.logs: live is no field" }
      "a field of warm misspelt" = { pools = { v = { beat = true, warm = [{ day = ["mon"], from = "07:00", to = "08:00" }] } }, says = "pools.v.warm: day is no field" }
      "a field of a metric"      = { pools = { v = { open = [{ namespace = "N", metric = "M", dims = {} }] } }, says = "dims is no field of a metric" }
      "a metric without a name"  = { pools = { v = { open = [{ namespace = "N" }] } }, says = "needs a namespace and a metric" }
      "an alive without a name"  = { pools = { v = { open = [{ namespace = "N", metric = "M", alive = { metric = "M" } }] } }, says = "needs a namespace and a metric" }
      "no signal"                = { pools = { v = { calls = "unobserved" } }, says = "nothing tells that a node is idle" }
      "a beat that is false"     = { pools = { v = { beat = false, calls = "unobserved" } }, says = "nothing tells that a node is idle" }
      "calls not said"           = { pools = { v = { requests = [{ namespace = "N", metric = "M" }] } }, says = "cannot see a call in progress" }
      "calls said twice"         = { pools = { v = { beat = true, calls = "unobserved" } }, says = "remove one" }
      "calls in another word"    = { pools = { v = { beat = true, calls = "seen" } }, says = "may only be" }
      "unobserved"               = { pools = { v = { requests = [{ namespace = "N", metric = "M" }], calls = "unobserved" } }, says = "" }
      "leases beside a beat"     = { pools = { v = { beat = true, calls = "leased", calls_per_node = 4 } }, says = "" }
      "calls a node, no leases"  = { pools = { v = { beat = true, calls_per_node = 4 } }, says = "counts leases" }
      "a group and no wake"      = { pools = { v = { beat = true, log_groups = ["/app"] } }, says = "go together" }
      "a wake and no group"      = { pools = { v = { beat = true, wake = { paths = ["/"] } } }, says = "go together" }
      "a wake without paths"     = { pools = { v = { beat = true, log_groups = ["/app"], wake = {} } }, says = "write paths" }
      "a path without a slash"   = { pools = { v = { beat = true, log_groups = ["/app"], wake = { paths = ["v1"] } } }, says = "write paths" }
      "a group that wakes"       = { pools = { v = { beat = true, log_groups = ["/app"], wake = { paths = ["/v1"] } } }, says = "" }
      "a type without a size"    = { pools = { v = { beat = true, instance_types = ["g6"] } }, says = "g6.xlarge" }
      "types"                    = { pools = { v = { beat = true, instance_types = ["g6.xlarge", "u-6tb1.metal"] } }, says = "" }
      "a default pool"           = { pools = { a = { beat = true }, b = { beat = true } }, default_pool = "b", says = "" }
      "an unknown default pool"  = { default_pool = "vioce", says = "vioce is none of the pools: write one of voice" }
    }
  }
  assert {
    condition     = length(output.missed) == 0
    error_message = jsonencode(output.missed)
  }
}

run "case_19_a_load_balancer_is_named_as_its_metrics_name_it" {
  command = plan
  module { source = "./tests/table" }
  variables {
    rows = {
      "by its name"                = { pools = { v = { open = [{ namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "my-alb" } }] } }, says = "write app/NAME/HASH" }
      "without its hash"           = { pools = { v = { open = [{ namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "app/my-alb" } }] } }, says = "write app/NAME/HASH" }
      "of another kind"            = { pools = { v = { open = [{ namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "net/my-alb/0123" } }] } }, says = "write app/NAME/HASH" }
      "a network one by its name"  = { pools = { v = { open = [{ namespace = "AWS/NetworkELB", metric = "M", dimensions = { LoadBalancer = "my-nlb" } }] } }, says = "write net/NAME/HASH" }
      "a target group by its name" = { pools = { v = { open = [{ namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "app/my-alb/0123", TargetGroup = "my-tg" } }] } }, says = "write targetgroup/NAME/HASH" }
      "a dimension that is none"   = { pools = { v = { open = [{ namespace = "AWS/ApplicationELB", metric = "M", dimensions = { Loadbalancer = "app/my-alb/0123" } }] } }, says = "no dimension Loadbalancer" }
      "as it should be"            = { pools = { v = { open = [{ namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "app/my-alb/0123456789abcdef", TargetGroup = "targetgroup/tg/1", AvailabilityZone = "ap-northeast-2a" } }] } }, says = "" }
      "as an ARN"                  = { pools = { v = { open = [{ namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "arn:aws:elasticloadbalancing:eu-west-1:000000000000:loadbalancer/app/my-alb/0123456789abcdef", TargetGroup = "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/tg/1" } }] } }, says = "" }
      "of another source"          = { pools = { v = { open = [{ namespace = "Own", metric = "M", dimensions = { LoadBalancer = "x" } }] } }, says = "" }
      "a proof of another one"     = { pools = { v = { open = [{ namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "app/a/1" }, alive = { namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "app/b/2" } } }] } }, says = "of another load balancer" }
      "a proof in another form"    = { pools = { v = { open = [{ namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "app/a/1" }, alive = { namespace = "AWS/ApplicationELB", metric = "M", dimensions = { LoadBalancer = "arn:aws:elasticloadbalancing:eu-west-1:000000000000:loadbalancer/app/a/1" } } }] } }, says = "" }
      "in alive"                   = { pools = { v = { requests = [{ namespace = "N", metric = "M", alive = { namespace = "AWS/ApplicationELB", metric = "H", dimensions = { LoadBalancer = "x" } } }], calls = "leased" } }, says = "write app/NAME/HASH" }
      "in ready"                   = { pools = { v = { beat = true, ready = { namespace = "AWS/ApplicationELB", metric = "H", dimensions = { LoadBalancer = "x" } } } }, says = "write app/NAME/HASH" }
    }
  }
  assert {
    condition     = length(output.missed) == 0
    error_message = jsonencode(output.missed)
  }
}

run "case_35_no_log_feeds_itself" {
  command = plan
  module { source = "./tests/table" }
  variables {
    rows = {
      "our own wakes"      = { pools = { v = { beat = true, log_groups = ["/aws/lambda/reveille-wake"], wake = { paths = ["/"] } } }, says = "the controller's own" }
      "our own is counted" = { pools = { v = { calls = "unobserved", logs = [{ group = "/aws/lambda/reveille-idle-check", lines = { paths = ["/"] } }] } }, says = "the controller's own" }
      "the node's wakes"   = { pools = { v = { beat = true, log_groups = ["/node/nginx"], wake = { paths = ["/"] } } }, says = "a sleeping node logs nothing" }
      "counted and wakes"  = { pools = { v = { beat = true, log_groups = ["/app"], wake = { paths = ["/"] }, logs = [{ group = "/app", lines = { paths = ["/"] } }] } }, says = "a sleeping node logs nothing" }
      "the node's counted" = { pools = { v = { calls = "unobserved", logs = [{ group = "/node/nginx", lines = { paths = ["/"] } }] } }, says = "" }
      "one group, two pools" = { pools = {
        a = { beat = true, log_groups = ["/app"], wake = { paths = ["/"] } }
        b = { beat = true, log_groups = ["/app"], wake = { paths = ["/"] } }
      }, says = "named by two pools" }
    }
  }
  assert {
    condition     = length(output.missed) == 0
    error_message = jsonencode(output.missed)
  }
}

run "case_41_a_budget_is_in_usd_and_says_so" {
  command = plan
  module { source = "./tests/table" }
  variables {
    rows = {
      "none"                    = { budget = null, says = "write {amount = 200, currency = \"USD\"}" }
      "in euro"                 = { budget = { amount = 20, currency = "EUR" }, says = "currency \"EUR\": AWS budgets in USD only" }
      "without a currency"      = { budget = { amount = 20 }, says = "currency is missing" }
      "of nothing"              = { budget = { amount = 0, currency = "USD" }, says = "an amount above zero" }
      "in words"                = { budget = { amount = "much", currency = "USD" }, says = "an amount above zero" }
      "as text"                 = { budget = { amount = "20.5", currency = "USD" }, says = "" }
      "a field misspelt"        = { budget = { amount = 20, currency = "USD", enforced = "gate" }, says = "enforced is no field" }
      "enforced otherwise"      = { budget = { amount = 20, currency = "USD", enforce = "kill" }, says = "write enforce" }
      "a gate without 100"      = { budget = { amount = 20, currency = "USD", enforce = "gate", actual = [50] }, says = "has to hold 100" }
      "no threshold"            = { budget = { amount = 20, currency = "USD", actual = [] }, says = "nobody would ever be told" }
      "thresholds that fall"    = { budget = { amount = 20, currency = "USD", actual = [80, 50, 100] }, says = "that rise" }
      "a threshold of nothing"  = { budget = { amount = 20, currency = "USD", forecast = [0] }, says = "that rise" }
      "more than AWS takes"     = { budget = { amount = 20, currency = "USD", actual = [10, 20, 30, 40, 50], mail = ["a@b.c"] }, says = "at most 5 thresholds" }
      "as many without mail"    = { budget = { amount = 20, currency = "USD", actual = [10, 20, 30, 40, 50] }, says = "" }
      "mail without an address" = { budget = { amount = 20, currency = "USD", mail = ["ops"] }, says = "mail addresses" }
      "a name with a colon"     = { budget = { amount = 20, currency = "USD", name = "a:b" }, says = "without ':'" }
    }
  }
  assert {
    condition     = length(output.missed) == 0
    error_message = jsonencode(output.missed)
  }
}

run "access_prices_and_times" {
  command = plan
  module { source = "./tests/table" }
  variables {
    rows = {
      "a token"                = { access = "token", token_sha256 = { app = sha256("a") }, says = "" }
      "a token without a hash" = { access = "token", says = "token_sha256: access = \"token\" needs one" }
      "a hash without a token" = { token_sha256 = { app = sha256("a") }, says = "is read with access = \"token\" only" }
      "a token for a hash"     = { access = "token", token_sha256 = { app = "secret" }, says = "64 hexadecimal digits as each hash" }
      "a name with a blank"    = { access = "token", token_sha256 = { "a b" = sha256("a") }, says = "as each name" }
      "an empty token"         = { access = "token", token_sha256 = { app = sha256("") }, says = "of an empty text" }
      "one hash twice"         = { access = "token", token_sha256 = { a = sha256("a"), b = upper(sha256("a")) }, says = "two names have one hash" }
      "a price of nothing"     = { prices = { "g6.xlarge" = "0" }, says = "a price above zero for g6.xlarge" }
      "a price in words"       = { prices = { "g6.xlarge" = "cheap" }, says = "a price above zero" }
      "a region without price" = { region = "me-south-1", says = "me-south-1 is not in the price table" }
      "own prices there"       = { region = "me-south-1", prices = { "g6.xlarge" = "0.9" }, says = "" }
      "idle within a tick"     = { minutes = { tick = 30 }, says = "idle_minutes: write at least" }
      "idle at the edge"       = { minutes = { tick = 25 }, says = "" }
      "a short pre-warm"       = { minutes = { tick = 10, prewarm = 10 }, says = "prewarm_minutes: write at least" }
      "a boot that is cut"     = { boot_seconds = 600, says = "ready_minutes: write more than boot_seconds" }
      "a boot just in time"    = { boot_seconds = 599, says = "" }
    }
  }
  assert {
    condition     = length(output.missed) == 0
    error_message = jsonencode(output.missed)
  }
}
