# Generated from shared/src/config.rs: change the settings there, then `make reference`.

variable "pools" {
  description = "The pools: their signals, and which request logs wake them. (see docs/configuration.md)"
  type        = any
}

variable "default_pool" {
  description = "The pool that a wake without a name means. Without it, such a wake is answered 400 where there are several pools. (a pool's name; default the only pool)"
  type        = string
  default     = null
}

variable "access" {
  description = "Who may ask the wake function: callers that AWS_IAM has verified, or who has a token; see below. (`iam` or `token`; default iam)"
  type        = string
  default     = "iam"
  nullable    = false
  validation {
    condition     = contains(["iam", "token"], var.access)
    error_message = "access: write \"iam\" or \"token\"."
  }
}

variable "token_sha256" {
  description = "The SHA-256 of each token that is taken, by its name. Refused with `iam`. (see docs/configuration.md; default none; needed with token)"
  type        = any
  default     = null
}

variable "target_url" {
  description = "Where the waiting page (`GET /status` in a browser) leads once a node is ready. (an http or https URL, or a path; default none)"
  type        = string
  default     = null
}

variable "idle_minutes" {
  description = "A node idle for this long is stopped. Has to be at least one tick and 5 minutes. (10 to 1440 minutes; default 30)"
  type        = number
  default     = 30
  nullable    = false
  validation {
    condition     = var.idle_minutes >= 10 && var.idle_minutes <= 1440 && floor(var.idle_minutes) == var.idle_minutes
    error_message = "idle_minutes: write a whole number from 10 to 1440 (minutes)."
  }
}

variable "prewarm_minutes" {
  description = "How long a pre-warm (`POST /wake`) that leads to no request and no lease keeps a node. Has to be at least one tick and 5 minutes. (10 to 1440 minutes; default REVEILLE_IDLE_MINUTES)"
  type        = number
  default     = null
  validation {
    condition     = var.prewarm_minutes == null ? true : var.prewarm_minutes >= 10 && var.prewarm_minutes <= 1440 && floor(var.prewarm_minutes) == var.prewarm_minutes
    error_message = "prewarm_minutes: write a whole number from 10 to 1440 (minutes), or leave it out."
  }
}

variable "tick_minutes" {
  description = "How often the idle check is scheduled; it has to match the schedule. (5 to 60 minutes; default 5)"
  type        = number
  default     = 5
  nullable    = false
  validation {
    condition     = var.tick_minutes >= 5 && var.tick_minutes <= 60 && floor(var.tick_minutes) == var.tick_minutes
    error_message = "tick_minutes: write a whole number from 5 to 60 (minutes)."
  }
}

variable "grace_minutes" {
  description = "No node is judged idle for this long after its launch. (0 to 120 minutes; default 10)"
  type        = number
  default     = 10
  nullable    = false
  validation {
    condition     = var.grace_minutes >= 0 && var.grace_minutes <= 120 && floor(var.grace_minutes) == var.grace_minutes
    error_message = "grace_minutes: write a whole number from 0 to 120 (minutes)."
  }
}

variable "wish_minutes" {
  description = "How long a wake that could not be met is tried again without a further request. (5 to 1440 minutes; default 60)"
  type        = number
  default     = 60
  nullable    = false
  validation {
    condition     = var.wish_minutes >= 5 && var.wish_minutes <= 1440 && floor(var.wish_minutes) == var.wish_minutes
    error_message = "wish_minutes: write a whole number from 5 to 1440 (minutes)."
  }
}

variable "boot_seconds" {
  description = "The time from start to ready that callers are told until it is learnt from the pool's last boots. (5 to 1800 seconds; default 60)"
  type        = number
  default     = 60
  nullable    = false
  validation {
    condition     = var.boot_seconds >= 5 && var.boot_seconds <= 1800 && floor(var.boot_seconds) == var.boot_seconds
    error_message = "boot_seconds: write a whole number from 5 to 1800 (seconds)."
  }
}

variable "ready_minutes" {
  description = "A node that runs and is not ready so long after its launch is told, stopped and started once more, whoever keeps asking for it; after a second time it is left stopped for a day. Has to be longer than `REVEILLE_BOOT_SECONDS`. (3 to 60 minutes; default 10)"
  type        = number
  default     = 10
  nullable    = false
  validation {
    condition     = var.ready_minutes >= 3 && var.ready_minutes <= 60 && floor(var.ready_minutes) == var.ready_minutes
    error_message = "ready_minutes: write a whole number from 3 to 60 (minutes)."
  }
}

variable "caller_wakes_per_minute" {
  description = "Wakes that one caller (token or role, and address) may send in a minute, and `PUT /leases` that found no room; more are answered 429. (1 to 100000 a minute; default 600)"
  type        = number
  default     = 600
  nullable    = false
  validation {
    condition     = var.caller_wakes_per_minute >= 1 && var.caller_wakes_per_minute <= 100000 && floor(var.caller_wakes_per_minute) == var.caller_wakes_per_minute
    error_message = "caller_wakes_per_minute: write a whole number from 1 to 100000 (a minute)."
  }
}

variable "wakes_per_minute" {
  description = "The same for all callers of a pool together. (1 to 100000 a minute; default 1200)"
  type        = number
  default     = 1200
  nullable    = false
  validation {
    condition     = var.wakes_per_minute >= 1 && var.wakes_per_minute <= 100000 && floor(var.wakes_per_minute) == var.wakes_per_minute
    error_message = "wakes_per_minute: write a whole number from 1 to 100000 (a minute)."
  }
}

variable "force_stop_minutes" {
  description = "A node that is `stopping` for longer is stopped by force. (5 to 120 minutes; default 10)"
  type        = number
  default     = 10
  nullable    = false
  validation {
    condition     = var.force_stop_minutes >= 5 && var.force_stop_minutes <= 120 && floor(var.force_stop_minutes) == var.force_stop_minutes
    error_message = "force_stop_minutes: write a whole number from 5 to 120 (minutes)."
  }
}

variable "uptime_hours" {
  description = "A node that ran for longer in a day of the zone is told, once a node and day. (1 to 23 hours; default 20)"
  type        = number
  default     = 20
  nullable    = false
  validation {
    condition     = var.uptime_hours >= 1 && var.uptime_hours <= 23 && floor(var.uptime_hours) == var.uptime_hours
    error_message = "uptime_hours: write a whole number from 1 to 23 (hours)."
  }
}

variable "zone" {
  description = "The zone of the uptime day, and of the times in messages. Months of money are in UTC, as AWS bills. (an IANA zone such as `Asia/Seoul`; default UTC)"
  type        = string
  default     = "UTC"
  nullable    = false
  validation {
    condition     = contains(split("\n", file("${path.module}/zones.txt")), var.zone)
    error_message = "zone: write an IANA zone such as \"Asia/Seoul\"; zones.txt in this module lists them."
  }
}

variable "budget" {
  description = "The amount for a month, its thresholds, and what happens at 100 %. (see docs/configuration.md; default none; the budget guard needs it)"
  type        = any
  default     = null
}

variable "prices" {
  description = "Your own prices; they come before the table of the region that `AWS_REGION` names. (see docs/configuration.md; default the price table)"
  type        = any
  default     = null
}

locals {
  # A setting that is null is left to the functions' own default.
  settings = {
    REVEILLE_POOLS                   = jsonencode(var.pools)
    REVEILLE_DEFAULT_POOL            = var.default_pool
    REVEILLE_ACCESS                  = var.access
    REVEILLE_TOKEN_SHA256            = var.token_sha256 == null ? null : jsonencode(var.token_sha256)
    REVEILLE_TARGET_URL              = var.target_url
    REVEILLE_IDLE_MINUTES            = tostring(var.idle_minutes)
    REVEILLE_PREWARM_MINUTES         = var.prewarm_minutes == null ? null : tostring(var.prewarm_minutes)
    REVEILLE_TICK_MINUTES            = tostring(var.tick_minutes)
    REVEILLE_GRACE_MINUTES           = tostring(var.grace_minutes)
    REVEILLE_WISH_MINUTES            = tostring(var.wish_minutes)
    REVEILLE_BOOT_SECONDS            = tostring(var.boot_seconds)
    REVEILLE_READY_MINUTES           = tostring(var.ready_minutes)
    REVEILLE_CALLER_WAKES_PER_MINUTE = tostring(var.caller_wakes_per_minute)
    REVEILLE_WAKES_PER_MINUTE        = tostring(var.wakes_per_minute)
    REVEILLE_FORCE_STOP_MINUTES      = tostring(var.force_stop_minutes)
    REVEILLE_UPTIME_HOURS            = tostring(var.uptime_hours)
    REVEILLE_ZONE                    = var.zone
    REVEILLE_BUDGET                  = var.budget == null ? null : jsonencode(var.budget)
    REVEILLE_PRICES                  = var.prices == null ? null : jsonencode(var.prices)
  }
}
