#pragma once
// Engines over links whose other ends are threads of this process (support/recorded_links.hpp).
#include <memory>
#include <utility>
#include <vector>

#include "engine/program_links.hpp"
#include "schedule/message_order.hpp"
#include "support/pipeline.hpp"
#include "support/recorded_links.hpp"

namespace vpp::test {

/// What an engine sees.
class Linked final : public PassingTransport {
  public:
    Linked(std::unique_ptr<LinkMaker> maker, std::unique_ptr<LinkTransport> links)
        : PassingTransport(static_cast<Transport&>(*links)), maker_(std::move(maker)), links_(std::move(links)) {}

  private:
    std::unique_ptr<LinkMaker> maker_;
    std::unique_ptr<LinkTransport> links_;
};

/// The first step sends values between stages through the host (engine/executor.hpp).
inline constexpr int64_t kStepsOverLinks = 3;

/// As run_program; the last `num_missing` links find no room. Requires: links that wait for memory, since the CPU reads
/// what came at once.
inline RunRecord run_over_links(Rig& setup, Program program, RecordedLinks& recorded, int64_t steps = kStepsOverLinks,
                                size_t num_missing = 0) {
    program.training.schedule = order_channels(program.training.schedule);
    return run_wrapped(setup, program, steps, [&](Transport& inner) -> std::unique_ptr<Transport> {
        auto maker = recorded.maker(inner.rank(), &inner);
        std::vector<Link> found = links_of(program);
        found.resize(found.size() - num_missing);
        auto links = std::make_unique<LinkTransport>(inner, found, *maker);
        return std::make_unique<Linked>(std::move(maker), std::move(links));
    });
}

}  // namespace vpp::test
