#include "data/transforms.hpp"

#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/suggest.hpp"
#include "data/field_transform.hpp"

namespace vpp::detail {

namespace {

class TransformedDataset : public Dataset {
  public:
    TransformedDataset(std::unique_ptr<Dataset> dataset, const Plan& plan)
        : dataset_(std::move(dataset)),
          fields_(dataset_->fields()),
          seed_(plan.train.seed),
          transforms_(fields_.fields.size()) {
        for (size_t i = 0; i < plan.data.transforms.size(); ++i) {
            const auto field = static_cast<size_t>(find_field(plan, i));
            transforms_[field].emplace(plan, i, fields_.fields[field]);
            fields_.fields[field] = transforms_[field]->field();
        }
    }

    const Fields& fields() const override { return fields_; }

    void read(int64_t sample, int field, std::span<std::byte> out) const override { read_draw({sample}, field, out); }

    void read_draw(const Draw& draw, int field, std::span<std::byte> out) const override {
        check_read(fields_, draw.sample, field, out.size());
        const auto& transform = transforms_[static_cast<size_t>(field)];
        if (!transform) return dataset_->read_draw(draw, field, out);
        const Field& from = dataset_->fields().fields[static_cast<size_t>(field)];
        Bytes stored(static_cast<size_t>(from.bytes_per_sample()));
        dataset_->read_draw(draw, field, stored);
        std::optional<uint64_t> key;
        if (draw.epoch) key = transform_key(seed_, *draw.epoch, draw.sample);
        transform->apply(stored, key, out);
    }

    std::string where(int64_t sample, int field) const override { return dataset_->where(sample, field); }
    int64_t stored_sample(int64_t sample) const override { return dataset_->stored_sample(sample); }
    std::vector<int64_t> file_samples() const override { return dataset_->file_samples(); }
    std::optional<int64_t> filler(int field) const override { return dataset_->filler(field); }
    std::string digest() const override { return dataset_->digest(); }

  private:
    int find_field(const Plan& plan, size_t index) const {
        const std::string& name = plan.data.transforms[index].field;
        if (const int field = fields_.find(name); field >= 0) return field;
        std::vector<std::string> names;
        std::string list;
        for (const Field& field : fields_.fields) {
            names.push_back(field.name);
            list += (list.empty() ? "" : ", ") + printable(field.name);
        }
        const std::string where = "data.transform[" + std::to_string(index) + "].field";
        throw Error(ErrorKind::Plan,
                    where + " is no field of the data (got '" + printable(name) + "', expected one of " + list + ")" +
                        did_you_mean(name, names),
                    plan.where(where));
    }

    std::unique_ptr<Dataset> dataset_;
    Fields fields_;
    uint64_t seed_;
    std::vector<std::optional<FieldTransform>> transforms_;  // by field
};

}  // namespace

std::unique_ptr<Dataset> with_transforms(std::unique_ptr<Dataset> dataset, const Plan& plan) {
    if (!dataset || plan.data.transforms.empty()) return dataset;
    return std::make_unique<TransformedDataset>(std::move(dataset), plan);
}

}  // namespace vpp::detail
