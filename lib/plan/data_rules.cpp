#include "plan/data_rules.hpp"

#include <algorithm>
#include <set>

#include "plan/kind_rows.hpp"

namespace vpp {

namespace {

/// The keys of [data] that some kinds do not read. data.train and data.val have two forms.
enum class DataKey {
    TrainFiles,
    ValFiles,
    Weights,
    Documents,
    SequenceLength,
    TokenDtype,
    TrainFields,
    ValFields,
    Fields,
    Samples
};

/// What a kind reads of them.
struct DataKind {
    const char* kind;
    std::vector<DataKey> needed, optional;

    bool needs(DataKey key) const { return std::ranges::find(needed, key) != needed.end(); }
    bool reads(DataKey key) const { return needs(key) || std::ranges::find(optional, key) != optional.end(); }
};

const std::vector<DataKind>& data_table() {
    using enum DataKey;
    static const std::vector<DataKind> kKinds{
        {"tokens", {TrainFiles, SequenceLength}, {ValFiles, Weights, Documents, TokenDtype}},
        {"text", {TrainFiles, SequenceLength}, {ValFiles, Weights}},
        {"arrays", {TrainFields}, {ValFields}},
        {"idx", {TrainFields}, {ValFields}},
        {"cifar10", {TrainFiles}, {ValFiles, Weights}},
        {"synthetic", {Fields, Samples}, {}},
    };
    return kKinds;
}

/// One of those keys in a plan.
struct DataEntry {
    DataKey key;
    std::string name;
    bool is_set;
    const char* example = "";
};

std::vector<DataEntry> entries_of(const DataPlan& data) {
    using enum DataKey;
    const DataPlan usual;
    return {
        {TrainFiles, "data.train", !data.train.empty(), "train = [\"data.bin\"]"},
        {ValFiles, "data.val", !data.val.empty(), "val = [\"data.bin\"]"},
        {Weights, "data.weights", !data.weights.empty()},
        {Documents, "data.documents", data.documents != usual.documents},
        {SequenceLength, "data.sequence_length", data.sequence_length > 0, "sequence_length = 128"},
        {TokenDtype, "data.token_dtype", data.token_dtype != usual.token_dtype},
        {TrainFields, "data.train", !data.train_fields.empty(), "[data.train] with a line field = \"file.npy\""},
        {ValFields, "data.val", !data.val_fields.empty(), "[data.val] with a line field = \"file.npy\""},
        {Fields, "data.fields", !data.fields.empty(), "fields = { x = \"float32[8]\" }"},
        {Samples, "data.samples", data.samples > 0, "samples = 1024"},
    };
}

}  // namespace

void check_data(const Plan& plan, Findings& findings) {
    const DataKind& kind = row_of(data_table(), plan.data.kind);
    const std::vector<DataEntry> entries = entries_of(plan.data);
    std::set<std::string> complained;  // data.train has two entries
    for (const DataEntry& entry : entries) {
        const bool is_read = kind.reads(entry.key);
        if (is_read == entry.is_set || (is_read && !kind.needs(entry.key))) continue;
        if (!complained.insert(entry.name).second) continue;
        if (is_read) {
            findings.add("data.kind", plan.data.kind + " data needs " + entry.name + "; try " + entry.example);
            continue;
        }
        const auto right = std::ranges::find_if(
            entries, [&](const DataEntry& other) { return other.name == entry.name && kind.reads(other.key); });
        findings.add(entry.name, entry.name + " does not fit " + plan.data.kind + " data in this form; " +
                                     (right == entries.end() ? "leave it out" : std::string("try ") + right->example));
    }
}

void check_validation(const Plan& plan, Findings& findings) {
    const DataPlan& data = plan.data;
    const bool has_files = !data.val.empty() || !data.val_fields.empty(), has_split = data.val_split > 0;
    if (has_files && has_split) {
        findings.add("data.val_split",
                     "data.val_split holds out a part of data.train, and data.val names validation "
                     "data already; leave one of them out");
    }
    if (plan.train.eval_every > 0 && !has_files && !has_split) {
        findings.add("train.eval_every",
                     "train.eval_every needs validation data; name data.val or data.val_split, or leave it out");
    }
}

std::vector<std::string> kinds_of_data_rules() {
    return kinds_of(data_table());
}

}  // namespace vpp
