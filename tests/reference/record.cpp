// Runs a plan in this process, ranks as threads, and writes for every step what tests/reference/train.py writes: losses
// as float hex, and the SHA-256 of the bytes of every tensor. check.py compares the two.
//
//     vpp_record OUT STEPS PLAN [KEY=VALUE ...]
//
// VPP_TEST_DEVICE=cuda: the ranks compute on one card.
#include <openssl/evp.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "app/registries.hpp"
#include "base/error.hpp"
#include "comm/in_process.hpp"
#include "engine/agreement.hpp"
#include "engine/engine.hpp"
#include "engine/initial_weights.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

using nlohmann::json;

std::string sha256(const at::Tensor& tensor) {
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_Digest(plain.const_data_ptr(), plain.nbytes(), digest, &size, EVP_sha256(), nullptr);
    std::string text;
    for (unsigned int i = 0; i < size; ++i) {
        char byte[3];
        std::snprintf(byte, sizeof byte, "%02x", digest[i]);
        text += byte;
    }
    return text;
}

std::string hex_float(double value) {
    char text[64];
    std::snprintf(text, sizeof text, "%a", value);
    return text;
}

/// One JSON object a step, filled by all ranks.
class Recorder {
  public:
    explicit Recorder(int64_t steps) : steps_(static_cast<size_t>(steps)) {}

    void add(int64_t step, const Engine& engine, const StepResult& result) {
        const std::vector<StateTensor> tensors = engine.tensors();  // replicas wait for each other here
        const std::lock_guard lock(mutex_);
        json& entry = steps_[static_cast<size_t>(step)];
        entry["step"] = step;
        entry["grad_norm"] = hex_float(result.grad_norm);
        entry["lr"] = result.lr;
        entry["updated"] = result.updated;
        if (result.loss_scale) entry["loss_scale"] = *result.loss_scale;
        entry["losses"] = json::array();
        for (double loss : result.microbatch_losses) entry["losses"].push_back(hex_float(loss));
        for (const StateTensor& tensor : tensors) {
            const size_t space = tensor.name.find(' ');
            entry[tensor.name.substr(0, space)][tensor.name.substr(space + 1)] = sha256(tensor.tensor);
        }
    }

    void write(const std::string& path) const {
        std::ofstream out(path);
        for (const json& entry : steps_) out << entry.dump() << '\n';
    }

  private:
    std::mutex mutex_;
    std::vector<json> steps_;
};

void record(const std::string& out, int64_t steps, const std::string& file, const std::vector<std::string>& overrides) {
    Plan plan = load_plan(file, overrides, registered_names());
    const int world = natural_world(plan);
    plan = resolve_plan(std::move(plan), world);
    set_threads(plan);
    const Datasets data = open_datasets(plan);
    const at::Device device = test::test_device();
    const Program program = prepare(plan, data, device).program;
    check_model_rules(plan, program);
    Recorder recorder(steps);
    InProcessOptions options;
    options.num_ranks = world;
    options.delay_probability = 0.3;
    InProcessWorld(options).run([&](Transport& transport) {
        Sources sources = open_sources(plan, program, device);
        Engine engine(plan, program, sources, data, transport);
        load_initial_weights(engine, plan, program);
        for (int64_t step = 0; step < steps; ++step) recorder.add(step, engine, engine.run_step(step));
    });
    recorder.write(out);
}

}  // namespace
}  // namespace vpp

int main(int argc, char** argv) {
    if (argc < 4) {
        std::cerr << "usage: vpp_record OUT STEPS PLAN [KEY=VALUE ...]" << std::endl;
        return 2;
    }
    try {
        vpp::record(argv[1], std::stoll(argv[2]), argv[3], {argv + 4, argv + argc});
        return 0;
    } catch (const vpp::Error& error) {
        std::cerr << error.what() << std::endl;
        return vpp::exit_code(error.kind());
    }
}
