#include "data/held_out.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "plan/value.hpp"

namespace vpp::detail {

HeldOut::HeldOut(int64_t num_samples, int64_t num_held_out, uint64_t seed)
    : num_samples_(num_samples), num_held_out_(num_held_out), key_(name_key(seed, "data.val_split")) {
    check(num_held_out > 0 && num_held_out <= num_samples / 2, "every run keeps a sample for training");
}

int64_t HeldOut::begin_of_run(int64_t run) const {
    return static_cast<int64_t>(static_cast<__int128>(run) * num_samples_ / num_held_out_);
}

int64_t HeldOut::held_out_of_run(int64_t run) const {
    const int64_t begin = begin_of_run(run);
    const auto length = static_cast<uint64_t>(begin_of_run(run + 1) - begin);
    return begin + static_cast<int64_t>(combine_key(key_, static_cast<uint64_t>(run)) % length);
}

int64_t HeldOut::sample(Subset part, int64_t i) const {
    if (part == Subset::Validation) {
        check(i >= 0 && i < num_held_out_, "the sample is held out");
        return held_out_of_run(i);
    }
    check(i >= 0 && i < num_samples_ - num_held_out_, "the sample is one of the training");
    // Before run r there are begin_of_run(r) - r samples of the training: the last run where those are at most i.
    int64_t low = 0, high = num_held_out_;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (begin_of_run(middle) - middle <= i ? low : high) = middle;
    }
    const int64_t sample = i + low;
    return sample < held_out_of_run(low) ? sample : sample + 1;
}

int64_t HeldOut::num_before(Subset part, int64_t sample) const {
    check(sample >= 0 && sample <= num_samples_, "the sample exists, or is the end");
    int64_t low = 0, high = num_held_out_;  // runs that begin at or before the sample
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (begin_of_run(middle) <= sample ? low : high) = middle;
    }
    const int64_t held_out = low + (held_out_of_run(low) < sample ? 1 : 0);
    return part == Subset::Validation ? held_out : sample - held_out;
}

namespace {

class PartOfSplit : public Dataset {
  public:
    PartOfSplit(std::unique_ptr<Dataset> dataset, const HeldOut& held_out, Subset part)
        : dataset_(std::move(dataset)), held_out_(held_out), part_(part), fields_(dataset_->fields()) {
        fields_.num_samples = held_out_.num_before(part_, fields_.num_samples);
    }

    const Fields& fields() const override { return fields_; }
    void read(int64_t sample, int field, std::span<std::byte> out) const override { read_draw({sample}, field, out); }

    void read_draw(const Draw& draw, int field, std::span<std::byte> out) const override {
        check_read(fields_, draw.sample, field, out.size());
        dataset_->read_draw({held_out_.sample(part_, draw.sample), draw.epoch}, field, out);
    }

    std::string where(int64_t sample, int field) const override {
        return dataset_->where(held_out_.sample(part_, sample), field);
    }

    int64_t stored_sample(int64_t sample) const override {
        return dataset_->stored_sample(held_out_.sample(part_, sample));
    }

    std::optional<int64_t> filler(int field) const override { return dataset_->filler(field); }

    std::vector<int64_t> file_samples() const override {
        std::vector<int64_t> samples;
        int64_t end = 0, before = 0;
        for (const int64_t of_file : dataset_->file_samples()) {
            end += of_file;
            const int64_t taken = held_out_.num_before(part_, end);
            samples.push_back(taken - before);
            before = taken;
        }
        return samples;
    }

    std::string digest() const override { return dataset_->digest(); }

  private:
    std::unique_ptr<Dataset> dataset_;
    HeldOut held_out_;
    Subset part_;
    Fields fields_;
};

}  // namespace

std::unique_ptr<Dataset> part_of_split(std::unique_ptr<Dataset> dataset, const Plan& plan, Subset part) {
    if (!dataset || plan.data.val_split == 0) return dataset;
    const int64_t num_samples = dataset->fields().num_samples;
    const auto wanted = static_cast<int64_t>(std::llround(plan.data.val_split * static_cast<double>(num_samples)));
    const int64_t num_held_out = std::min(wanted, num_samples / 2);
    if (num_held_out == 0) {
        throw Error(ErrorKind::BadData,
                    "data.val_split holds out none of the samples (got " + toml_text(plan.data.val_split) + " of " +
                        std::to_string(num_samples) + "); try a larger share, or more data",
                    plan.where("data.val_split"));
    }
    return std::make_unique<PartOfSplit>(std::move(dataset), HeldOut(num_samples, num_held_out, plan.train.seed), part);
}

}  // namespace vpp::detail
