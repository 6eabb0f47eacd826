"""docs/configuration.md has every key as the models have it; docs/methods.md every setting."""

import re

from configuration_page import PAGE, rows, written

from spsa.algorithms import RULES, rule_settings

MOST_KEYS = 65


def test_the_page_is_made_from_the_models():
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "run `make docs`"


def test_config_toml_has_few_keys_and_each_is_explained():
    tables = rows()
    assert all("| None |" not in row for table in tables.values() for row in table.values())
    assert sum(map(len, tables.values())) - len(tables["parameter"]) <= MOST_KEYS


def test_the_settings_of_every_method_are_in_the_guide():
    guide = PAGE.with_name("methods.md").read_text(encoding="utf-8")
    for name in RULES:
        section = re.split(
            r"^##", re.split(rf"^###.* ?`{name}`.*$", guide, flags=re.M)[1], flags=re.M
        )[0]
        table = {
            setting.strip("`"): default
            for row in re.findall(r"^\| (`[^|]+`) \| ([^|]*) \|", section, re.M)
            for setting, default in zip(*(cell.split(", ") for cell in row), strict=False)
        }
        assert set(table) == {setting.name for setting in rule_settings(name)}, name
        for setting in rule_settings(name):
            if isinstance(setting.default, float | int):
                assert table[setting.name] == f"{setting.default:g}", setting.name
