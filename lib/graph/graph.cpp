#include "graph/graph.hpp"

#include <algorithm>

namespace vpp {

int Graph::num_legal_cuts() const {
    if (cuts.empty()) return 0;
    return static_cast<int>(std::count_if(cuts.begin() + 1, cuts.end(), [](const GraphCut& cut) { return cut.legal; }));
}

}  // namespace vpp
