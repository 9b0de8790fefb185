variable "name" {
  description = "What every name in this module begins with."
  type        = string
  default     = "voice"
  nullable    = false
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,31}$", var.name))
    error_message = "name: write 2 to 32 small letters, digits and '-', beginning with a letter."
  }
}

variable "pool" {
  description = "The pool that the nodes belong to: the value of their tag reveille:pool."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9._-]{1,64}$", var.pool))
    error_message = "pool: write 1 to 64 letters, digits, '.', '_' and '-'; the controller's `pools` has to hold it."
  }
}

variable "table_name" {
  description = "The ledger's table, where the beats are written: the controller's output table_name."
  type        = string
}

variable "nodes" {
  description = "The nodes, by a name of yours: the availability zone, and the instance type. Several zones help where one has no capacity."
  type        = map(object({ zone = string, instance_type = optional(string, "g6.xlarge") }))
  validation {
    condition     = length(var.nodes) > 0
    error_message = "nodes: write one at least, such as {voice-1 = {zone = \"ap-northeast-2a\"}}."
  }
  validation {
    condition     = alltrue([for name in keys(var.nodes) : can(regex("^[a-z0-9][a-z0-9-]{0,30}$", name))])
    error_message = "nodes: write names of 1 to 31 small letters, digits and '-'."
  }
  validation {
    condition     = alltrue([for node in values(var.nodes) : can(regex("^[a-z]{2}(-[a-z]+)+-\\d[a-p]$", node.zone))])
    error_message = "nodes: write each zone with its region and letter, such as ap-northeast-2a."
  }
  validation {
    condition     = alltrue([for node in values(var.nodes) : can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", node.instance_type))])
    error_message = "nodes: write each instance_type with family and size, such as g6.xlarge."
  }
}

variable "ami_parameter" {
  description = "The SSM parameter that names the AMI, of your own image or of AWS such as /aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id. Read when a node is made; a newer AMI replaces nothing."
  type        = string
  validation {
    condition     = startswith(var.ami_parameter, "/")
    error_message = "ami_parameter: write a parameter's full name, with its leading '/'; an AMI's id is not one."
  }
}

variable "ami_owners" {
  description = "Whose AMI it may be: account ids, self, amazon or aws-marketplace."
  type        = list(string)
  default     = ["self", "amazon"]
  nullable    = false
}

variable "vpc_cidr" {
  description = "Of the nodes' own VPC."
  type        = string
  default     = "10.90.0.0/20"
  nullable    = false
  validation {
    condition     = can(cidrsubnet(var.vpc_cidr, 4, 15)) && try(tonumber(split("/", var.vpc_cidr)[1]) >= 16 && tonumber(split("/", var.vpc_cidr)[1]) <= 24, false)
    error_message = "vpc_cidr: write a block from /16 to /24, such as 10.90.0.0/20: it is cut into 16 subnets."
  }
}

variable "peers" {
  description = "VPCs whose callers reach the nodes, by a name of yours. Routes are made both ways. With account_id (another account) or region it is a request only: its owner accepts it and makes the routes back."
  type = map(object({
    vpc_id          = string
    cidr            = string
    route_table_ids = optional(list(string), [])
    account_id      = optional(string)
    region          = optional(string)
  }))
  default  = {}
  nullable = false
  validation {
    condition     = alltrue([for peer in values(var.peers) : can(cidrhost(peer.cidr, 0))])
    error_message = "peers: write each cidr as a block, such as 10.0.0.0/16."
  }
  # The shorter prefix of two blocks holds both where they overlap.
  validation {
    condition = alltrue([for peer in values(var.peers) : try(
      cidrhost("${split("/", var.vpc_cidr)[0]}/${min(split("/", var.vpc_cidr)[1], split("/", peer.cidr)[1])}", 0)
      != cidrhost("${split("/", peer.cidr)[0]}/${min(split("/", var.vpc_cidr)[1], split("/", peer.cidr)[1])}", 0), true
    )])
    error_message = "peers: a peer's cidr overlaps vpc_cidr, which no route can tell apart: write another vpc_cidr."
  }
  validation {
    condition     = alltrue([for peer in values(var.peers) : length(peer.route_table_ids) > 0 || peer.account_id != null || peer.region != null])
    error_message = "peers: write route_table_ids, or nothing there finds its way to the nodes."
  }
  validation {
    condition     = alltrue([for peer in values(var.peers) : length(peer.route_table_ids) == 0 || (peer.account_id == null && peer.region == null)])
    error_message = "peers: route tables of another account or region are their owner's: leave out route_table_ids."
  }
}

variable "public_address" {
  description = "Whether the nodes have a public address and a way out (for SSM, packages, models); nothing comes in by it. Without it, bring a way to SSM and the AMI has to hold everything."
  type        = bool
  default     = true
  nullable    = false
}

variable "volume" {
  description = "The root volume: gp3, always encrypted. 250 MB/s and 4000 IOPS load a model about a fifth faster than gp3's own 125 and 3000."
  type        = object({ gib = optional(number, 100), mibps = optional(number, 250), iops = optional(number, 4000) })
  default     = {}
  nullable    = false
  validation {
    condition     = var.volume.iops >= 3000 && var.volume.iops <= min(80000, max(3000, 500 * var.volume.gib))
    error_message = "volume: write iops from 3000 to 80000, and at most 500 for each GiB."
  }
  validation {
    condition     = var.volume.mibps >= 125 && var.volume.mibps <= min(2000, var.volume.iops / 4)
    error_message = "volume: write mibps from 125 to 2000, and at most a quarter of iops."
  }
  validation {
    condition     = var.volume.gib >= 1 && var.volume.gib <= 65536
    error_message = "volume: write gib from 1 to 65536."
  }
}

variable "volume_kms_key_arn" {
  description = "A customer key for the volumes; by default the account's own aws/ebs. The controller has to get it too (volume_kms_key_arns): a start needs a grant on it."
  type        = string
  default     = null
  validation {
    condition     = var.volume_kms_key_arn == null ? true : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:\\d{12}:key/[0-9a-zA-Z-]+$", var.volume_kms_key_arn))
    error_message = "volume_kms_key_arn: write the ARN of a key (arn:aws:kms:REGION:ACCOUNT:key/ID); an alias grants nothing."
  }
}

variable "engine" {
  description = "What serves calls: a shell command that listens on 127.0.0.1:$PORT, in so many slots, and the path that answers 2xx once its model is loaded."
  type = object({
    command = string
    slots   = optional(number, 1)
    health  = optional(string, "/health")
    user    = optional(string, "nobody")
  })
  validation {
    condition     = var.engine.slots >= 1 && var.engine.slots <= 16 && floor(var.engine.slots) == var.engine.slots
    error_message = "engine: write slots from 1 to 16."
  }
  validation {
    condition     = startswith(var.engine.health, "/") && !can(regex("[\\s;{}]", var.engine.health))
    error_message = "engine: write health as a path, such as /health."
  }
  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.engine.user))
    error_message = "engine: write user as the name of one that the AMI has."
  }
}

variable "use_paths" {
  description = "Which requests in nginx's log are use, as prefixes of their paths."
  type        = list(string)
  default     = ["/"]
  nullable    = false
  validation {
    condition     = length(var.use_paths) > 0 && alltrue([for path in var.use_paths : startswith(path, "/") && !strcontains(path, "'")])
    error_message = "use_paths: write paths with a leading '/', such as /v1/."
  }
}

variable "beat" {
  description = "Where the nodes fetch the beat's program at their first boot: an https URL and its SHA-256. Null: the AMI has it as /usr/local/bin/reveille-beat."
  type        = object({ url = string, sha256 = string })
  default     = null
  validation {
    condition     = var.beat == null ? true : startswith(var.beat.url, "https://") && !can(regex("['\\s]", var.beat.url)) && can(regex("^[0-9a-f]{64}$", var.beat.sha256))
    error_message = "beat: write an https URL and the 64 small hexadecimal digits that sha256sum prints."
  }
}

variable "tags" {
  description = "Tags of everything in this module that can have some."
  type        = map(string)
  default     = {}
  nullable    = false
}
