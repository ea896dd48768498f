"""Recipes and the models that they know, as tables."""

from collections.abc import Sequence
from dataclasses import asdict

from advisor.recipes.models import Model
from advisor.recipes.recipes import Recipe
from advisor.report.document import Document, Row, Section, Table, columns


def recipes_document(recipes: Sequence[Recipe], models: Sequence[Model]) -> Document:
    """Each recipe with what it does, and the names of models."""
    rows = tuple(Row((recipe.name, recipe.summary, recipe.model, recipe.unit)) for recipe in recipes)
    names = ", ".join(model.name for model in models)
    known = Section("Models", (f"{names}, any Hugging Face id, and the path of a config.json.",))
    facts = {
        "recipes": [asdict(recipe) for recipe in recipes],
        "models": [
            {"name": model.name, "source": model.source, "params": model.num_params, "config": model.config}
            for model in models
        ],
    }
    table = Table(columns=columns("Recipe", "Trains", "Default model", "Amount in"), rows=rows)
    return Document(facts=facts, blocks=(table, known), title="Recipes")
