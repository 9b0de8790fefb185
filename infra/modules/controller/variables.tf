# What the module needs beside the settings of the functions (settings.tf).

variable "name" {
  description = "What every name in this module begins with."
  type        = string
  default     = "reveille"
  nullable    = false
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,31}$", var.name))
    error_message = "name: write 2 to 32 small letters, digits and '-', beginning with a letter."
  }
}

variable "package" {
  description = "Where `make package` put the zips and their manifest.json: a folder, or s3://BUCKET/PREFIX in the same region."
  type        = string
  validation {
    condition     = startswith(var.package, "s3://") ? can(regex("^s3://[a-z0-9.-]+/.+[^/]$", var.package)) : !can(regex("://", var.package))
    error_message = "package: write a folder such as \"target/lambda\", or s3://BUCKET/PREFIX without a slash at the end; Lambda takes no other address."
  }
}

variable "architecture" {
  description = "Of the functions; has to be that of the zips, which their manifest.json names."
  type        = string
  default     = "x86_64"
  nullable    = false
  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "architecture: write \"x86_64\" or \"arm64\"."
  }
}

variable "log_retention_days" {
  description = "How long the functions' logs are kept."
  type        = number
  default     = 30
  nullable    = false
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days: write one that CloudWatch Logs knows: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400 …"
  }
}

variable "reserved_concurrency" {
  description = "Of the wake function: bounds what a flood of callers costs. Unset by default: AWS refuses it where fewer than 100 would be left to the account."
  type        = number
  default     = null
  validation {
    condition     = var.reserved_concurrency == null ? true : var.reserved_concurrency >= 2 && floor(var.reserved_concurrency) == var.reserved_concurrency
    error_message = "reserved_concurrency: write a whole number from 2 on, or leave it out; 0 would switch the function off, and with 1 a log batch holds up every caller."
  }
}

variable "node_log_groups" {
  description = "Log groups that the nodes write themselves. They may be counted as use (`logs` of a pool), and are refused as what wakes: a sleeping node logs nothing, and one that runs would keep itself awake."
  type        = set(string)
  default     = []
  nullable    = false
}

variable "subscription_pattern" {
  description = "Which lines of a pool's `log_groups` reach the wake function, as a CloudWatch Logs filter pattern, by log group; \"*\" is for all others. It only saves calls: the function filters again by the pool's `wake`. The default takes each line with a method that can be a call."
  type        = map(string)
  default     = { "*" = "?GET ?POST ?PUT ?PATCH ?DELETE" }
  nullable    = false
  validation {
    condition     = contains(keys(var.subscription_pattern), "*")
    error_message = "subscription_pattern: write a pattern for \"*\" too; \"\" takes every line."
  }
}

variable "request_metrics" {
  description = "Metrics of the namespace Reveille that count the lines of a log group, by the metric's name; for a pool's `requests` where there is no other metric. Each is a custom metric and costs $0.30 a month."
  type        = map(object({ log_group = string, pattern = string }))
  default     = {}
  nullable    = false
  validation {
    condition     = alltrue([for metric in keys(var.request_metrics) : can(regex("^[A-Za-z][A-Za-z0-9]{0,99}$", metric))])
    error_message = "request_metrics: write names of letters and digits, such as VoiceRequests."
  }
  validation {
    condition     = alltrue([for metric in values(var.request_metrics) : !contains(local.own_log_groups, metric.log_group)])
    error_message = "request_metrics: a log group of the controller itself is named; count the log of something that serves calls."
  }
}

variable "function_url" {
  description = "Whether the wake function has a URL: for pre-warms, /status and leases."
  type        = bool
  default     = true
  nullable    = false
}

variable "url_callers" {
  description = "With access = \"iam\": ARNs of roles and users, or account ids, that may call the URL. Roles of this account may also have it in their own policy: output caller_policy."
  type        = set(string)
  default     = []
  nullable    = false
  validation {
    condition     = alltrue([for caller in var.url_callers : can(regex("^(\\d{12}|arn:aws[a-z-]*:iam::\\d{12}:(role|user|root)(/.+)?)$", caller))])
    error_message = "url_callers: write ARNs of roles or users, or account ids of 12 digits; \"*\" would let in everybody."
  }
  validation {
    condition     = length(var.url_callers) == 0 || var.access == "iam"
    error_message = "url_callers: with access = \"token\" whoever has a token may call: leave it out."
  }
}

variable "cors_origins" {
  description = "Origins of browser pages that may call the URL, such as https://app.example.com. None: no CORS."
  type        = list(string)
  default     = []
  nullable    = false
  validation {
    condition     = length(var.cors_origins) <= 100 && alltrue([for origin in var.cors_origins : can(regex("^https?://[^/*]+$", origin))])
    error_message = "cors_origins: write at most 100 origins such as https://app.example.com, without a path and without '*'."
  }
}

variable "mail" {
  description = "Addresses that get the alerts; each has to confirm a mail from AWS."
  type        = set(string)
  default     = []
  nullable    = false
  validation {
    condition     = alltrue([for address in var.mail : can(regex("^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", address))])
    error_message = "mail: write addresses such as ops@example.com."
  }
}

variable "encrypt_topic" {
  description = "Whether the topic of the alerts has a KMS key of its own (about $1 a month), with a policy that lets CloudWatch and Budgets publish."
  type        = bool
  default     = false
  nullable    = false
}

variable "volume_kms_key_arns" {
  description = "Customer keys of the nodes' encrypted volumes. A start needs a grant on them: without it EC2 accepts it and the node falls back to stopped."
  type        = set(string)
  default     = []
  nullable    = false
  validation {
    condition     = alltrue([for key in var.volume_kms_key_arns : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:\\d{12}:key/[0-9a-zA-Z-]+$", key))])
    error_message = "volume_kms_key_arns: write ARNs of keys (arn:aws:kms:REGION:ACCOUNT:key/ID); an alias grants nothing."
  }
}

variable "watched_nodes" {
  description = "Instance ids, by a name of yours, that have the second-line uptime alarm: it needs none of the functions."
  type        = map(string)
  default     = {}
  nullable    = false
  validation {
    condition     = alltrue([for id in values(var.watched_nodes) : can(regex("^i-[0-9a-f]{8,17}$", id))])
    error_message = "watched_nodes: write instance ids such as i-0123456789abcdef0."
  }
}

variable "lean" {
  description = "Whether only what has to be told is watched: leaves out the dashboard and the alarms of the single functions."
  type        = bool
  default     = false
  nullable    = false
}

variable "tags" {
  description = "Tags of everything in this module that can have some."
  type        = map(string)
  default     = {}
  nullable    = false
}
