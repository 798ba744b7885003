#include "base/json_text.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"

namespace vpp {

namespace {

using nlohmann::json;

// The parser's words quote a whole text where that has no end.
constexpr size_t kLongestReason = 300;

/// Sees every event of the parser before a value is kept, so that limits end the work and not only the result.
class Watch {
  public:
    Watch(const JsonLimits& limits, const std::string& source) : limits_(limits), source_(source) {}

    bool operator()(int depth, json::parse_event_t event, json& parsed) {
        switch (event) {
            case json::parse_event_t::object_start:
                keys_.emplace_back();
                enter(depth);
                break;
            case json::parse_event_t::array_start:
                enter(depth);
                break;
            case json::parse_event_t::object_end:
                keys_.pop_back();
                break;
            case json::parse_event_t::key:
                count();
                add_key(parsed.get_ref<const std::string&>());
                break;
            case json::parse_event_t::value:
                count();
                break;
            case json::parse_event_t::array_end:
                break;
        }
        return true;
    }

  private:
    [[noreturn]] void refuse(const std::string& what) const { refuse_data(source_, what); }

    void enter(int depth) {
        count();
        if (depth >= limits_.max_depth) {
            refuse("JSON nested deeper than " + std::to_string(limits_.max_depth) + " levels");
        }
    }

    void count() {
        if (++num_values_ > limits_.max_values) {
            refuse("more than " + std::to_string(limits_.max_values) + " JSON values");
        }
    }

    void add_key(const std::string& key) {
        if (!keys_.back().insert(key).second) refuse("the key '" + printable(key.substr(0, 100)) + "' is there twice");
    }

    const JsonLimits& limits_;
    const std::string& source_;
    size_t num_values_ = 0;
    std::vector<std::set<std::string>> keys_;  // of the objects that are open, outermost first
};

}  // namespace

json parse_json(std::string_view text, const JsonLimits& limits, const std::string& source) {
    // The parser takes a NUL byte for the end of the text and would not see what follows it.
    if (text.find('\0') != std::string_view::npos) refuse_data(source, "a NUL byte in JSON text");
    Watch watch(limits, source);
    try {
        return json::parse(text.begin(), text.end(), std::ref(watch));
    } catch (const json::exception& e) {
        refuse_data(source, "not the JSON expected: " + printable(beginning_of(e.what(), kLongestReason)));
    }
}

std::string json_text(const json& value, int indent) {
    return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
    return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

}  // namespace vpp
