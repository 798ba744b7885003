#include "data/documents.hpp"

#include "data/ranges.hpp"
#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

using test::error_of;
using test::raw;
using test::read_values;
using Numbers = std::vector<int64_t>;

class Documents : public testing::Test {
  protected:
    /// Tokens 1, 2, 3, ... of uint16 and their index; T = 3.
    Plan plan(const std::vector<int32_t>& lengths, const Numbers& borders, int64_t shift_bytes = 0) const {
        std::vector<uint16_t> tokens;
        Numbers begins;
        for (const int32_t length : lengths) {
            begins.push_back(static_cast<int64_t>(tokens.size() * 2));
            for (int32_t i = 0; i < length; ++i) tokens.push_back(static_cast<uint16_t>(tokens.size() + 1));
        }
        if (begins.size() > 1) begins[1] += shift_bytes;
        Plan plan;
        plan.data.kind = "tokens";
        plan.data.sequence_length = 3;
        plan.data.documents = "apart";
        plan.data.train = {folder_.write("x.bin", raw(tokens))};
        folder_.write("x.idx", std::string("MMIDIDX\0\0", 9) + raw<uint64_t>({1}) + '\x08' +
                                   raw<uint64_t>({lengths.size(), borders.size()}) + raw(lengths) + raw(begins) +
                                   raw(borders));
        return plan;
    }

    std::string refusal(const Plan& plan) const {
        return error_of(ErrorKind::BadData, [&] { open_dataset(plan, Subset::Train); });
    }

    test::TemporaryFolder folder_;
};

TEST_F(Documents, NoSampleHasTokensOfTwo) {
    // Documents of 6, 1, 0, 4 and 2 + 1 tokens: the last one has two sequences.
    const auto data = open_dataset(plan({6, 1, 0, 4, 2, 1}, {0, 1, 2, 3, 4, 6}), Subset::Train);
    ASSERT_EQ(data->fields().num_samples, 4);
    const Numbers tokens[] = {{1, 2, 3}, {4, 5, 0}, {8, 9, 10}, {12, 13, 0}};
    const Numbers targets[] = {{2, 3, 4}, {5, 6, -100}, {9, 10, 11}, {13, 14, -100}};
    for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(read_values<int64_t>(*data, i, 0), tokens[i]);
        EXPECT_EQ(read_values<int64_t>(*data, i, 1), targets[i]);
    }
    EXPECT_EQ(data->where(1, 0), folder_.path("x.bin") + ", sample 1 (document 0, tokens from 3 on)");
    EXPECT_EQ(data->where(3, 0), folder_.path("x.bin") + ", sample 3 (document 4, tokens from 11 on)");
    EXPECT_EQ(data->file_samples(), Numbers{4});
}

TEST_F(Documents, WhatFillsUpIsWhatTheModelIgnores) {
    const std::shared_ptr<Dataset> data = open_dataset(plan({6, 4}, {0, 1, 2}), Subset::Train);
    const auto with_model = [&](std::optional<int64_t> ignored) {
        return with_ranges(data, {{"targets", 100, "classes of the loss", ignored}});
    };
    EXPECT_EQ(read_values<int64_t>(*with_model(-1), 1, 1), (Numbers{5, 6, -1}));
    EXPECT_EQ(read_values<int64_t>(*with_model(-1), 1, 0), (Numbers{4, 5, 0})) << "tokens are no targets";
    EXPECT_EQ(read_values<int64_t>(*with_model(-100), 1, 1), (Numbers{5, 6, -100}));
    EXPECT_EQ(with_model(-1)->filler(1), -1);
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*with_model({}), 1, 1); }), "(got -100)");
}

TEST_F(Documents, EmptyOnesTakeNoSampleFromOthers) {
    Plan pairs = plan({2, 0, 0, 3}, {0, 1, 2, 3, 4});
    pairs.data.sequence_length = 1;
    const auto data = open_dataset(pairs, Subset::Train);
    ASSERT_EQ(data->fields().num_samples, 3);
    for (int64_t i = 0; i < 3; ++i) {
        const int64_t token = Numbers{1, 3, 4}[static_cast<size_t>(i)];
        EXPECT_EQ(read_values<int64_t>(*data, i, 0), Numbers{token});
        EXPECT_EQ(read_values<int64_t>(*data, i, 1), Numbers{token + 1});
    }
}

TEST_F(Documents, JoinedTheyAreOneRunOfTokens) {
    Plan joined = plan({6, 1, 3}, {0, 1, 2, 3});
    joined.data.documents = "joined";
    const auto data = open_dataset(joined, Subset::Train);
    EXPECT_EQ(data->fields().num_samples, 3);
    EXPECT_EQ(read_values<int64_t>(*data, 1, 1), (Numbers{5, 6, 7}));
}

TEST_F(Documents, TheIgnoredTargetIsThatOfTheLoss) {
    Plan other = plan({2}, {0, 1});
    other.loss = LossPlan{};
    other.loss->ignore_index = 7;
    EXPECT_EQ(read_values<int64_t>(*open_dataset(other, Subset::Train), 0, 1), (Numbers{2, 7, 7}));
}

TEST_F(Documents, ADigestKnowsTheBorders) {
    const std::string one = open_dataset(plan({2, 2}, {0, 1, 2}), Subset::Train)->digest();
    EXPECT_EQ(one, open_dataset(plan({2, 2}, {0, 1, 2}), Subset::Train)->digest());
    EXPECT_NE(one, open_dataset(plan({2, 2}, {0, 2, 2}), Subset::Train)->digest());
}

TEST_F(Documents, WhatDoesNotHoldTogetherIsRefused) {
    EXPECT_HAS(refusal(plan({3, 3, 1}, {0, 1, 2, 3}, 2)),
               "x.idx: sequence 1 does not follow the one before it (got 3 tokens from byte 8 on, expected to begin at "
               "byte 6 of 7 tokens); join the documents, data.documents = \"joined\", or make the index again");
    for (const Numbers& borders : {Numbers{0, 1}, {1, 2}, {0, 2, 1, 2}, {0, 3, 2}, {0, -1, 2}}) {
        EXPECT_HAS(refusal(plan({3, 4}, borders)), "x.idx: document border ");
    }
    EXPECT_HAS(refusal(plan({3, 4}, {0, 1})),
               "document border 1 is at sequence 1 (expected ascending numbers from 0 to "
               "the number of sequences, 2)");
    EXPECT_HAS(refusal(plan({3, 4}, {})),
               "x.idx: the documents do not fill the token file (got 0 borders and 7 tokens, "
               "the file has 7)");
    EXPECT_HAS(refusal(plan({1, 1}, {0, 1, 2})), "x.bin: none of its 2 documents has two tokens; leave the file out");
    const Plan alone = plan({3}, {0, 1});
    std::filesystem::remove(folder_.path("x.idx"));
    EXPECT_HAS(refusal(alone),
               "x.bin: no index of its documents lies beside it, and data.documents = \"apart\" needs "
               "one, of Megatron-LM's form; make both with vpp data make, or leave data.documents out");
}

}  // namespace
}  // namespace vpp::detail
