#include "support/pipeline.hpp"

#include <algorithm>
#include <random>

#include "app/registries.hpp"
#include "engine/agreement.hpp"
#include "graph/stages.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "schedule/checker.hpp"
#include "schedule/lowering.hpp"
#include "support/tiny_models.hpp"

namespace vpp::test {

std::vector<int> Rig::legal_cuts() const {
    std::vector<int> cuts;
    for (int op = 1; op < graph().num_ops(); ++op) {
        if (graph().cuts[static_cast<size_t>(op)].legal) cuts.push_back(op);
    }
    return cuts;
}

std::string plan_text(const std::string& model_file, const std::string& fields, const std::string& more) {
    return "[model]\nfile = \"" + model_file + "\"\n[data]\nkind = \"synthetic\"\nsamples = 64\n[data.fields]\n" +
           fields +
           "[mesh]\npp = 1\n[pipeline]\nnum_microbatches = 3\n"
           "[optimizer]\nkind = \"adamw\"\nlr = 0.01\nweight_decay = 0.1\nclip_norm = 0.7\n"
           "[train]\nsteps = 3\nglobal_batch_size = 6\n" +
           more;
}

Rig set_up(Plan plan) {
    const int world = natural_world(plan);
    Rig setup{resolve_plan(std::move(plan), world), {}, {}};
    set_threads(setup.plan);
    setup.data = open_datasets(setup.plan);
    setup.prepared = prepare(setup.plan, setup.data, test_device());
    setup.prepared.sources.place_on(test_device());
    return setup;
}

Rig set_up(const std::string& text, const std::vector<std::string>& set) {
    return set_up(parse_plan(text, "test.toml", set, registered_names()));
}

Rig set_up_tiny(const std::string& name, const std::string& folder, const std::vector<std::string>& set) {
    const std::string file = folder + "/" + name + ".pt";
    save_tiny_model(name, file);
    return set_up(plan_text(file, tiny_model(name).fields), set);
}

std::vector<std::string> with_replicas(int num_replicas, bool zero1) {
    return {"mesh.dp=" + std::to_string(num_replicas), "train.global_batch_size=" + std::to_string(6 * num_replicas),
            "mesh.bucket_bytes=1024", std::string("mesh.zero1=") + (zero1 ? "true" : "false")};
}

namespace {

Schedule empty_schedule(const std::string& name, const std::vector<int>& rank_of_stage, int num_microbatches) {
    Schedule schedule;
    schedule.name = name;
    schedule.num_ranks = *std::max_element(rank_of_stage.begin(), rank_of_stage.end()) + 1;
    schedule.num_microbatches = num_microbatches;
    schedule.rank_of_stage = rank_of_stage;
    schedule.actions.resize(static_cast<size_t>(schedule.num_ranks));
    return schedule;
}

void append(Schedule& schedule, ActionKind kind, int stage, int microbatch) {
    const int rank = schedule.rank_of_stage[static_cast<size_t>(stage)];
    schedule.actions[static_cast<size_t>(rank)].push_back({kind, stage, microbatch});
}

}  // namespace

Schedule plain_schedule(const std::vector<int>& rank_of_stage, int num_microbatches) {
    Schedule schedule = empty_schedule("PLAIN", rank_of_stage, num_microbatches);
    for (int stage = 0; stage < schedule.num_stages(); ++stage) {
        for (int m = 0; m < num_microbatches; ++m) append(schedule, ActionKind::F, stage, m);
    }
    for (int stage = schedule.num_stages() - 1; stage >= 0; --stage) {
        for (int m = 0; m < num_microbatches; ++m) append(schedule, ActionKind::B, stage, m);
    }
    return schedule;
}

Schedule random_schedule(const std::vector<int>& rank_of_stage, int num_microbatches, uint64_t seed) {
    Schedule schedule = empty_schedule("RANDOM", rank_of_stage, num_microbatches);
    const int num_stages = schedule.num_stages();
    std::mt19937_64 random(seed);
    std::vector<int> forwards(static_cast<size_t>(num_stages), 0);                      // done, by stage
    std::vector<int> next_back(static_cast<size_t>(num_microbatches), num_stages - 1);  // next stage, by microbatch
    std::vector<int> next_weight = next_back;  // a tied gradient goes from W to W
    while (true) {
        std::vector<Action> ready;
        for (int stage = 0; stage < num_stages; ++stage) {
            const int m = forwards[static_cast<size_t>(stage)];
            const bool fed = stage == 0 || forwards[static_cast<size_t>(stage) - 1] > m;
            if (m < num_microbatches && fed) ready.push_back({ActionKind::F, stage, m});
        }
        for (int m = 0; m < num_microbatches; ++m) {
            const int stage = next_back[static_cast<size_t>(m)], weight = next_weight[static_cast<size_t>(m)];
            if (weight > stage) ready.push_back({ActionKind::W, weight, m});
            if (stage < 0 || forwards.back() <= m) continue;
            ready.push_back({ActionKind::I, stage, m});
            if (weight == stage) ready.push_back({ActionKind::B, stage, m});
        }
        if (ready.empty()) return schedule;
        const Action chosen = ready[random() % ready.size()];
        append(schedule, chosen.kind, chosen.stage, chosen.microbatch);
        if (chosen.kind == ActionKind::F) {
            ++forwards[static_cast<size_t>(chosen.stage)];
        }
        if (gives_input_gradient(chosen.kind)) --next_back[static_cast<size_t>(chosen.microbatch)];
        if (gives_weight_gradient(chosen.kind)) --next_weight[static_cast<size_t>(chosen.microbatch)];
    }
}

std::vector<OpRange> random_ranges(const Graph& graph, const std::vector<int>& cuts, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<OpRange> ranges;
    int begin = 0;
    for (int op = 1; op <= graph.num_ops(); ++op) {
        const bool is_end = op == graph.num_ops() || std::find(cuts.begin(), cuts.end(), op) != cuts.end();
        const bool is_border = is_end || (graph.cuts[static_cast<size_t>(op)].legal && random() % 3 == 0);
        if (!is_border) continue;
        if (random() % 2 == 0) ranges.push_back({begin, op});
        begin = op;
    }
    return ranges;
}

Program cut_program(const Program& program, const std::vector<int>& cuts, const Schedule& compute,
                    const std::vector<OpRange>& recomputed) {
    Program cut = program;
    cut.mesh = {compute.num_ranks, program.mesh.dp, 1};
    cut.training.split = make_stages(program.training.graph, cuts, recomputed);
    const std::vector<ScheduleEdge> edges = schedule_edges(cut.training.split);
    const bool reduces = cut.mesh.dp > 1;
    cut.training.schedule = lower(compute, edges, {.reduce_gradients = reduces});
    check_schedule(cut.training.schedule, edges, {.reduces = reduces});
    cut.evaluation.reset();
    return cut;
}

void with_engines(Rig& setup, const Program& program, const std::function<void(Engine&)>& body,
                  InProcessOptions options) {
    options.num_ranks = program.mesh.num_ranks();
    InProcessWorld(options).run([&](Transport& transport) {
        Engine engine(setup.plan, program, setup.prepared.sources, setup.data, transport);
        body(engine);
    });
}

RunRecord run_program(Rig& setup, const Program& program, int64_t steps, InProcessOptions options,
                      const AfterStep& after_step) {
    RunRecord record;
    const auto body = [&](Engine& engine) {
        RunRecord own = record_run(engine, steps, after_step);
        if (engine.transport().rank() == 0) record = std::move(own);
    };
    with_engines(setup, program, body, options);
    return record;
}

RunRecord run_wrapped(Rig& setup, const Program& program, int64_t steps, const WrapTransport& wrap) {
    RunRecord record;
    InProcessOptions options;
    options.num_ranks = program.mesh.num_ranks();
    InProcessWorld(options).run([&](Transport& inner) {
        const std::unique_ptr<Transport> transport = wrap(inner);
        Engine engine(setup.plan, program, setup.prepared.sources, setup.data, *transport);
        RunRecord own = record_run(engine, steps);
        if (inner.rank() == 0) record = std::move(own);
    });
    return record;
}

RunRecord run_reference(Rig& setup, int64_t steps) {
    return run_program(setup, reference_program(setup.prepared.program), steps);
}

}  // namespace vpp::test
