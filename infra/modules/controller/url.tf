locals {
  auth_type = var.access == "token" ? "NONE" : "AWS_IAM"
  # With a token the function itself asks who it is; with IAM only who is named here, or whose own policy says so.
  callers = !var.function_url ? [] : var.access == "token" ? ["*"] : sort([for caller in var.url_callers :
    # As Lambda shows an account: its id alone would look changed at every plan, and be made anew.
    can(regex("^\\d+$", caller)) ? "arn:${local.partition}:iam::${caller}:root" : caller
  ])
}

resource "aws_lambda_function_url" "wake" {
  count              = var.function_url ? 1 : 0
  function_name      = aws_lambda_function.function["wake"].function_name
  authorization_type = local.auth_type

  dynamic "cors" {
    for_each = length(var.cors_origins) > 0 ? [var.cors_origins] : []
    content {
      allow_origins  = cors.value
      allow_methods  = ["GET", "POST", "PUT", "DELETE"]
      allow_headers  = ["authorization", "content-type", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"]
      expose_headers = ["retry-after"]
      max_age        = 3600
    }
  }
}

resource "aws_lambda_permission" "url" {
  for_each               = toset(local.callers)
  statement_id           = "url-${substr(sha256(each.value), 0, 16)}"
  function_name          = aws_lambda_function.function["wake"].function_name
  action                 = "lambda:InvokeFunctionUrl"
  principal              = each.value
  function_url_auth_type = local.auth_type
}

# Since October 2025 a URL needs lambda:InvokeFunction too, limited to calls by the URL: without that limit everybody could
# call the function itself and say who he is. The provider knows the limit from 6.29 on only; CloudFormation knows it.
resource "aws_cloudformation_stack" "url" {
  count = length(local.callers) > 0 ? 1 : 0
  name  = "${var.name}-url"
  tags  = var.tags
  template_body = jsonencode({
    Description = "Reveille: who may call the wake function by its URL"
    Resources = { for n, caller in local.callers : "Caller${n}" => {
      Type = "AWS::Lambda::Permission"
      Properties = {
        FunctionName          = local.function_names["wake"]
        Action                = "lambda:InvokeFunction"
        Principal             = caller
        InvokedViaFunctionUrl = true
      }
    } }
  })
  depends_on = [aws_lambda_function.function]
}
