#include "examples/examples.hpp"

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "examples/makers.hpp"

namespace vpp {

const std::vector<Example>& all_examples() {
    static const std::vector<Example> kExamples{
        {"gpt-tiny", "a GPT of two blocks learns to write sentences, byte by byte", false, detail::make_gpt_tiny},
        {"digits-cnn", "a convolutional classifier learns to read digits", false, detail::make_digits_cnn},
        {"two-towers", "words and numbers, a tower for each, tell a class together", false, detail::make_two_towers},
        {"manual", "a model file per stage, joined by the plan", false, detail::make_manual},
        {"own-model", "a plan for your TorchScript file, with random data for now", true, detail::make_own_model},
    };
    return kExamples;
}

const Example& example_of(std::string_view name) {
    std::vector<std::string> names;
    for (const Example& example : all_examples()) {
        if (example.name == name) return example;
        names.push_back(example.name);
    }
    std::string known;
    for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
    throw Error(ErrorKind::CommandLine, "there is no example '" + printable(name) + "'" + did_you_mean(name, names) +
                                            " (there are: " + known + ")");
}

}  // namespace vpp
