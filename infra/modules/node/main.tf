locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.id
  ami       = data.aws_ssm_parameter.ami.insecure_value
}

data "aws_ssm_parameter" "ami" {
  name = var.ami_parameter
}

# Told at plan time: RunInstances would say so after network and roles are made.
data "aws_ami_ids" "named" {
  owners             = var.ami_owners
  include_deprecated = true
  filter {
    name   = "image-id"
    values = [local.ami]
  }
  lifecycle {
    postcondition {
      condition     = length(self.ids) == 1
      error_message = "${var.ami_parameter} names ${local.ami}, and no such AMI of ${join(" or ", var.ami_owners)} is in ${local.region}: copy it to this region, or write its owner in ami_owners."
    }
  }
}

data "aws_ec2_instance_type_offerings" "node" {
  for_each      = var.nodes
  location_type = "availability-zone"
  filter {
    name   = "instance-type"
    values = [each.value.instance_type]
  }
  filter {
    name   = "location"
    values = [each.value.zone]
  }
  lifecycle {
    postcondition {
      condition     = length(self.instance_types) > 0
      error_message = "Node ${each.key}: ${each.value.instance_type} is not offered in ${each.value.zone}: write another zone or another type."
    }
  }
}

resource "aws_instance" "node" {
  for_each               = var.nodes
  ami                    = local.ami
  instance_type          = each.value.instance_type
  subnet_id              = aws_subnet.zone[each.value.zone].id
  vpc_security_group_ids = [aws_security_group.node.id]
  iam_instance_profile   = aws_iam_instance_profile.node[each.key].name
  user_data              = local.user_data
  # A shutdown from inside is a stop, never a loss.
  instance_initiated_shutdown_behavior = "stop"

  metadata_options {
    http_tokens = "required"
    # One hop: a container that is not on the host's network gets no credentials of the node.
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = var.volume.gib
    throughput  = var.volume.mibps
    iops        = var.volume.iops
    encrypted   = true
    kms_key_id  = var.volume_kms_key_arn
    tags        = merge(var.tags, { Name = "${var.name}-${each.key}", "reveille:pool" = var.pool })
  }

  tags = merge(var.tags, { Name = "${var.name}-${each.key}", "reveille:pool" = var.pool })

  lifecycle {
    # A newer AMI or another user data would replace a node that has what it needs; the controller may change the type where
    # there is no capacity; a person may hold the node by its tag.
    ignore_changes = [ami, user_data, instance_type, tags["reveille:keep-until"], tags_all["reveille:keep-until"]]
  }

  depends_on = [data.aws_ami_ids.named, data.aws_ec2_instance_type_offerings.node]
}
