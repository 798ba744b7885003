#pragma once
// Fields of the Plan by member pointers: field<&Plan::mesh, &MeshPlan::threads>() reads and writes plan.mesh.threads as
// a Value. An optional section on the way is looked into, a list on the way is entered at `entry`. Used by the table of
// keys alone.
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "plan/keys.hpp"

namespace vpp::detail {

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

/// The field at the end of a chain of members; nullptr when an optional section on the way is not there.
template <auto Member, auto... Rest, typename Object>
auto* reach(Object& object, size_t entry) {
    auto& member = object.*Member;
    using Type = std::remove_cvref_t<decltype(member)>;
    if constexpr (sizeof...(Rest) == 0) {
        return &member;
    } else if constexpr (kIsOptional<Type>) {
        return member ? reach<Rest...>(*member, entry) : nullptr;
    } else if constexpr (kIsVector<Type>) {
        return reach<Rest...>(member.at(entry), entry);
    } else {
        return reach<Rest...>(member, entry);
    }
}

/// The value of a field; an empty text, table or list of numbers is no value.
template <typename T>
std::optional<Value> to_value(const T& field) {
    if constexpr (std::same_as<T, std::string> || std::same_as<T, NamedTexts> ||
                  std::same_as<T, std::vector<int64_t>> || std::same_as<T, std::vector<double>>) {
        return field.empty() ? std::nullopt : std::optional<Value>(field);
    } else if constexpr (kIsOptional<T>) {
        return field ? to_value(*field) : std::nullopt;
    } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
        return Value(static_cast<int64_t>(field));
    } else {
        return Value(field);
    }
}

template <typename T>
void from_value(T& field, const Value& value) {
    if constexpr (kIsOptional<T>) {
        from_value(field.emplace(), value);
    } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
        field = static_cast<T>(std::get<int64_t>(value));
    } else {
        field = std::get<T>(value);
    }
}

/// The field as a Value of its own kind.
template <auto... Members>
PlanField field() {
    return {[](const Plan& plan, size_t entry) -> std::optional<Value> {
                const auto* member = reach<Members...>(plan, entry);
                return member ? to_value(*member) : std::nullopt;
            },
            [](Plan& plan, size_t entry, const Value& value) {
                auto* member = reach<Members...>(plan, entry);
                check(member != nullptr, "a key is set in a section that was not made");
                from_value(*member, value);
            }};
}

/// The pair betas = [beta1, beta2] of the OptimizerValues at the end of the chain.
template <auto... Members>
PlanField betas_field() {
    return {[](const Plan& plan, size_t entry) -> std::optional<Value> {
                const OptimizerValues* values = reach<Members...>(plan, entry);
                return Value(std::vector<double>{values->beta1, values->beta2});
            },
            [](Plan& plan, size_t entry, const Value& value) {
                OptimizerValues* values = reach<Members...>(plan, entry);
                const auto& betas = std::get<std::vector<double>>(value);
                values->beta1 = betas.at(0);
                values->beta2 = betas.at(1);
            }};
}

/// A list of files or a table of them: data.train and data.val have a member for each form.
template <auto List, auto Table>
PlanField files_field() {
    return {[](const Plan& plan, size_t) -> std::optional<Value> {
                if (!(plan.data.*Table).empty()) return Value(plan.data.*Table);
                if (!(plan.data.*List).empty()) return Value(plan.data.*List);
                return std::nullopt;
            },
            [](Plan& plan, size_t, const Value& value) {
                if (const auto* table = std::get_if<NamedTexts>(&value)) {
                    plan.data.*Table = *table;
                } else {
                    plan.data.*List = std::get<std::vector<std::string>>(value);
                }
            }};
}

/// virtual_chunks: a number or "auto".
inline PlanField chunks_field() {
    return {[](const Plan& plan, size_t) -> std::optional<Value> {
                if (plan.pipeline.choose_virtual_chunks) return Value(std::string("auto"));
                return Value(int64_t{plan.pipeline.virtual_chunks});
            },
            [](Plan& plan, size_t, const Value& value) {
                plan.pipeline.choose_virtual_chunks = std::holds_alternative<std::string>(value);
                if (const auto* number = std::get_if<int64_t>(&value)) {
                    plan.pipeline.virtual_chunks = static_cast<int>(*number);
                }
            }};
}

/// memory_limit: a number of activations, or bytes as text.
inline PlanField memory_limit_field() {
    return {[](const Plan& plan, size_t) -> std::optional<Value> {
                const std::optional<MemoryLimit>& limit = plan.pipeline.memory_limit;
                if (!limit) return std::nullopt;
                return limit->bytes ? Value(exact_bytes_text(*limit->bytes)) : Value(*limit->activations);
            },
            [](Plan& plan, size_t, const Value& value) {
                MemoryLimit& limit = plan.pipeline.memory_limit.emplace();
                if (const auto* text = std::get_if<std::string>(&value)) {
                    limit.bytes = parse_bytes(*text);
                } else {
                    limit.activations = std::get<double>(value);
                }
            }};
}

}  // namespace vpp::detail
