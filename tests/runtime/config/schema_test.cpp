#include "runtime/config/schema.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "runtime/config/check.h"
#include "runtime/config/json_schema.h"
#include "runtime/config/show.h"
#include "runtime/config/suggest.h"

using namespace sherd;

namespace {

/// The sub-schema of a key path.
const JsonValue* property(const JsonValue& schema, std::string_view path) {
  const JsonValue* at = &schema;
  while (at != nullptr && !path.empty()) {
    const auto dot = path.find('.');
    const JsonValue* properties = at->find("properties");
    at = properties == nullptr ? nullptr : properties->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

/// Every object schema forbids what it does not list.
int count_strict_objects(const JsonValue& schema) {
  int count = 0;
  const JsonValue* properties = schema.find("properties");
  if (properties == nullptr) return 0;
  REQUIRE(schema.find("additionalProperties") != nullptr);
  REQUIRE_FALSE(schema.find("additionalProperties")->boolean);
  for (const JsonMember& member : properties->members) count += count_strict_objects(member.value);
  return count + 1;
}

}  // namespace

TEST_CASE("every row of the schema is sound") {
  const Schema schema;
  std::set<std::string_view> paths;
  for (const SchemaKey& key : schema.keys()) {
    CAPTURE(key.path);
    CHECK(paths.insert(key.path).second);
    CHECK(schema.find(key.path) == &key);
    CHECK_FALSE(schema.is_section(key.path));
    CHECK(key.min <= key.max);
    CHECK((key.choices.empty() || key.type == ValueType::string || key.type == ValueType::weights));
    if (!key.standard.empty()) {
      const JsonValue value = parse_json(key.standard, "default");
      CHECK_NOTHROW(checked(key, value));
      CHECK(key.otherwise.empty());
    }
    for (const std::string& value : split_choices(key.agrees)) {
      CHECK_NOTHROW(checked(key, parse_json(value, "agrees")));
    }
    const bool explained = key.fate == Fate::own || key.fate == Fate::honoured || !key.note.empty();
    CHECK(explained);
    const bool documented = key.fate != Fate::own && key.fate != Fate::honoured;
    CHECK((documented || !key.meaning.empty()));
    CHECK((documented || is_model_key(key) || !key.standard.empty() || !key.otherwise.empty()));
  }
}

TEST_CASE("sections list their children in order") {
  const Schema schema;
  CHECK(schema.is_section(""));
  CHECK(schema.is_section("zero_optimization.offload_param"));
  CHECK_FALSE(schema.is_section("zero_optimization.stage"));
  CHECK_FALSE(schema.is_section("nothing"));
  CHECK(schema.children("checkpoint").front() == "every");
  CHECK(schema.find("zero_optimization") == nullptr);
  CHECK(section_of("a.b.c") == "a.b");
  CHECK(section_of("a").empty());
  CHECK(last_name("a.b.c") == "c");
  CHECK(member_path("", "a") == "a");
  CHECK(member_path("a", "b") == "a.b");
}

TEST_CASE("the JSON schema has every key, its type and its default, and is strict throughout") {
  const Schema schema;
  const JsonValue json = parse_json(json_schema(schema), "schema");
  CHECK(json.find("$schema")->text == "https://json-schema.org/draft/2020-12/schema");
  CHECK(count_strict_objects(json) > 30);
  for (const SchemaKey& key : schema.keys()) {
    CAPTURE(key.path);
    const JsonValue* found = property(json, key.path);
    REQUIRE(found != nullptr);
    CHECK_FALSE(found->find("description")->text.empty());
    CHECK((found->find("anyOf") != nullptr) == (key.type != ValueType::any));
    if (!key.standard.empty()) {
      CHECK(same_json(*found->find("default"), parse_json(key.standard, "default")));
    }
  }
  CHECK(property(json, kOriginsKey) != nullptr);
  const JsonValue& stage = property(json, "zero_optimization.stage")->find("anyOf")->items[0];
  CHECK(stage.find("type")->text == "integer");
  CHECK(stage.find("minimum")->integer == 0);
  CHECK(stage.find("maximum")->integer == 3);
  const JsonValue& reduction = property(json, "reduction")->find("anyOf")->items[0];
  CHECK(reduction.find("enum")->items.size() == 2);
  const JsonValue& layers = property(json, "model.layers")->find("anyOf")->items[0];
  CHECK(layers.find("items")->find("type")->text == "integer");
}

TEST_CASE("the reference names every key") {
  const Schema schema;
  const std::string reference = config_reference(schema);
  for (const SchemaKey& key : schema.keys()) {
    CAPTURE(key.path);
    const bool row = reference.find("| `" + std::string(key.path) + "` |") != std::string::npos;
    const bool listed =
        reference.find(" `" + std::string(last_name(key.path)) + "`") != std::string::npos;
    CHECK((row || (is_model_key(key) && listed)));
  }
}

TEST_CASE("docs/config.md is what the schema gives") {
  // SHERD_WRITE_DOCS=1 writes it anew.
  const std::string path = SHERD_TEST_DATA "/../../../../docs/config.md";
  const std::string reference = config_reference(Schema());
  if (std::getenv("SHERD_WRITE_DOCS") != nullptr) std::ofstream(path) << reference;
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text == reference);
}
