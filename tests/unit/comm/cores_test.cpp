#include "comm/cores.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Cores, NothingIsSaidWhenEveryThreadHasACore) {
    EXPECT_EQ(crowded_text({4, 1, 4, 8}), "");
    EXPECT_EQ(crowded_text({2, 4, 8, 8}), "");
}

TEST(Cores, RanksThatMpirunBoundAreToldHowToUseTheHost) {
    EXPECT_EQ(crowded_text({2, 4, 2, 16}),
              "2 ranks of 4 threads share 2 cores of this host's 16; try mpirun --bind-to none, which lets them use "
              "all");
    EXPECT_EQ(crowded_text({2, 1, 2, 16, /*on_cards=*/true}),
              "2 ranks of 2 threads share 2 cores of this host's 16; try mpirun --bind-to none, which lets them use "
              "all");
    EXPECT_EQ(crowded_text({2, 1, 2, 16}), "");
    EXPECT_EQ(crowded_text({1, 2, 1, 2}),
              "1 rank of 2 threads has 1 core of this host's 2; try mpirun --bind-to none, which lets them use all");
}

TEST(Cores, AHostThatIsTooSmallIsSaid) {
    EXPECT_EQ(crowded_text({2, 1, 3, 3, /*on_cards=*/true}),
              "2 ranks of 2 threads share 3 cores: steps take longer than with a core for each");
    EXPECT_EQ(crowded_text({4, 1, 2, 2}), "4 ranks share 2 cores: steps take longer than with a core for each");
    EXPECT_EQ(crowded_text({4, 2, 4, 4}),
              "4 ranks of 2 threads share 4 cores: steps take longer than with a core for each; try mesh.threads = 1");
}

}  // namespace
}  // namespace vpp
