# One role a node: its policy names the one key that it may write.

resource "aws_iam_role" "node" {
  for_each    = var.nodes
  name        = "${var.name}-${each.key}"
  description = "Reveille: what node ${each.key} may do"
  tags        = var.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
}

resource "aws_iam_instance_profile" "node" {
  for_each = var.nodes
  name     = "${var.name}-${each.key}"
  role     = aws_iam_role.node[each.key].name
  tags     = var.tags
}

resource "aws_iam_role_policy_attachment" "ssm" {
  for_each   = var.nodes
  role       = aws_iam_role.node[each.key].name
  policy_arn = "arn:${local.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}

resource "aws_iam_role_policy" "beat" {
  for_each = var.nodes
  name     = "beat"
  role     = aws_iam_role.node[each.key].name
  # arn:aws: is the only partition that the file knows.
  policy = replace(replace(replace(replace(replace(file("${path.module}/files/beat-policy.json"),
    "arn:aws:", "arn:${local.partition}:"), "REGION", local.region), "ACCOUNT", local.account),
  "TABLE", var.table_name), "INSTANCE_ID", aws_instance.node[each.key].id)
}
