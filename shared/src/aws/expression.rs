//! One UpdateItem, put together piece by piece: every name and value goes through a placeholder, the same one for the same
//! name.

use super::errors::malformed;
use super::item::attribute;
use crate::error::CallError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;

/// An update and its condition.
#[derive(Debug, Default)]
pub(super) struct Expression {
    set: Vec<String>,
    remove: Vec<String>,
    conditions: Vec<String>,
    names: Vec<String>,
    values: Vec<AttributeValue>,
}

impl Expression {
    /// The path through these names, as placeholders.
    pub(super) fn path(&mut self, parts: &[&str]) -> String {
        let placed: Vec<String> = parts.iter().map(|part| self.name(part)).collect();
        placed.join(".")
    }

    fn name(&mut self, name: &str) -> String {
        let known = self.names.iter().position(|known| known == name);
        let n = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        format!("#n{n}")
    }

    /// A value, as a placeholder.
    pub(super) fn value<T: Serialize>(&mut self, value: &T) -> Result<String, CallError> {
        let value = attribute(value).map_err(|error| malformed("write to the ledger", error))?;
        self.values.push(value);
        Ok(format!(":v{}", self.values.len() - 1))
    }

    /// `SET path = value`.
    pub(super) fn set<T: Serialize>(&mut self, parts: &[&str], value: &T) -> Result<(), CallError> {
        let (path, value) = (self.path(parts), self.value(value)?);
        self.set.push(format!("{path} = {value}"));
        Ok(())
    }

    /// `SET path = path + 1`, from zero where it is absent.
    pub(super) fn count(&mut self, parts: &[&str]) -> Result<(), CallError> {
        let (path, zero, one) = (self.path(parts), self.value(&0)?, self.value(&1)?);
        self.set.push(format!("{path} = if_not_exists({path}, {zero}) + {one}"));
        Ok(())
    }

    /// `REMOVE path`.
    pub(super) fn remove(&mut self, parts: &[&str]) {
        let path = self.path(parts);
        self.remove.push(path);
    }

    /// One more condition; all have to hold.
    pub(super) fn only_if(&mut self, condition: impl AsRef<str>) {
        self.conditions.push(format!("({})", condition.as_ref()));
    }

    /// Puts it into the request.
    pub(super) fn on(self, request: UpdateItemFluentBuilder) -> UpdateItemFluentBuilder {
        let part = |word: &str, list: &[String]| {
            if list.is_empty() { String::new() } else { format!("{word} {} ", list.join(", ")) }
        };
        let update = format!("{}{}", part("SET", &self.set), part("REMOVE", &self.remove));
        let mut request = request.update_expression(update.trim_end());
        if !self.conditions.is_empty() {
            request = request.condition_expression(self.conditions.join(" AND "));
        }
        for (n, name) in self.names.into_iter().enumerate() {
            request = request.expression_attribute_names(format!("#n{n}"), name);
        }
        for (n, value) in self.values.into_iter().enumerate() {
            request = request.expression_attribute_values(format!(":v{n}"), value);
        }
        request
    }
}
