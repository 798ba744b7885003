#include "graph/input_forms.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "base/error.hpp"

namespace vpp {

namespace {

/// What is changed of a field, and how NumPy does it.
struct Change {
    bool (*is_for)(const Field& field);
    void (*apply)(Field& field);
    std::string (*call)(const std::string& array);
};

bool is_other_than_weights(const Field& field) {
    return field.dtype == DType::F64 || field.dtype == DType::F16 || field.dtype == DType::BF16 ||
           field.dtype == DType::U8;
}

bool is_number_of_channels(int64_t size) {
    return size == 1 || size == 3 || size == 4;
}

/// In the order in which NumPy is told them: what fewer bytes are moved by first.
constexpr Change kChanges[] = {
    {[](const Field& field) { return field.shape == std::vector<int64_t>{1}; },
     [](Field& field) { field.shape.clear(); }, [](const std::string& array) { return array + "[:, 0]"; }},
    {[](const Field& field) {
         return field.shape.size() == 3 && is_number_of_channels(field.shape[2]) &&
                !is_number_of_channels(field.shape[0]);
     },
     [](Field& field) { std::ranges::rotate(field.shape, field.shape.end() - 1); },
     [](const std::string& array) { return "numpy.moveaxis(" + array + ", -1, 1)"; }},
    {is_other_than_weights, [](Field& field) { field.dtype = DType::F32; },
     [](const std::string& array) { return array + ".astype(\"float32\")"; }},
};
constexpr size_t kNumChanges = std::size(kChanges);

/// "x as float32", "x as uint8[3, 32, 32]".
std::string change_text(const Field& before, const Field& after) {
    const std::string text = printable(after.name) + " as " + std::string(name_of(after.dtype));
    return after.shape == before.shape ? text : text + shape_text(after.shape);
}

/// `chosen`: a bit for each change. Empty where one of them changes nothing.
InputForm form_of(const std::vector<ProbeInput>& inputs, unsigned chosen) {
    InputForm form{inputs, ""};
    unsigned used = 0;
    bool has_bytes = false;
    std::string forms, calls;
    for (ProbeInput& input : form.inputs) {
        const Field before = input.field;
        std::string call = printable(before.name);
        for (size_t i = 0; i < kNumChanges; ++i) {
            if ((chosen >> i & 1U) == 0 || !kChanges[i].is_for(before)) continue;
            used |= 1U << i;
            kChanges[i].apply(input.field);
            call = kChanges[i].call(call);
        }
        const bool is_cast = input.field.dtype != before.dtype;
        if (!is_cast && input.field.shape == before.shape) continue;
        input.read = {};
        has_bytes = has_bytes || (is_cast && before.dtype == DType::U8);
        forms += (forms.empty() ? "" : ", ") + change_text(before, input.field);
        calls += (calls.empty() ? "" : ", ") + call;
    }
    if (used != chosen) return {};
    const bool only_cast = chosen == 1U << (kNumChanges - 1);
    form.advice = ", but it takes " + forms + ": save it so, with NumPy " + calls;
    if (has_bytes && only_cast) form.advice += ", or have it read so by a [[data.transform]] with ";
    if (has_bytes && !only_cast) form.advice += "; instead of the cast a [[data.transform]] may read it with ";
    if (has_bytes) form.advice += "scale = 0.00392156862745098, which makes bytes 0 to 1";
    return form;
}

}  // namespace

std::vector<InputForm> other_forms(const std::vector<ProbeInput>& inputs) {
    std::vector<InputForm> forms;
    std::vector<unsigned> choices;
    for (unsigned chosen = 1; chosen < 1U << kNumChanges; ++chosen) choices.push_back(chosen);
    std::ranges::stable_sort(choices, {}, [](unsigned chosen) { return std::popcount(chosen); });
    for (const unsigned chosen : choices) {
        InputForm form = form_of(inputs, chosen);
        if (!form.advice.empty()) forms.push_back(std::move(form));
    }
    return forms;
}

}  // namespace vpp
