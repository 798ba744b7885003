#include "graph/ivalue_tensors.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using test::values;

const at::Tensor kA = values({1}), kB = values({2}), kC = values({3});

/// (a, [b, a], {"k": c}, None, 3, [[b]])
c10::IValue nested() {
    c10::Dict<std::string, at::Tensor> dict;
    dict.insert("k", kC);
    c10::List<c10::List<at::Tensor>> deep({c10::List<at::Tensor>({kB})});
    return c10::ivalue::Tuple::create(
        {kA, c10::List<at::Tensor>({kB, kA}), dict, c10::IValue(), int64_t{3}, c10::IValue(deep)});
}

std::vector<int64_t> sizes_of(const c10::IValue& value) {
    std::vector<int64_t> sizes;
    for (const at::Tensor& tensor : tensors_in(value)) sizes.push_back(tensor.numel());
    return sizes;
}

TEST(IValueTensors, AreWalkedInOneOrder) {
    EXPECT_EQ(sizes_of(nested()), (std::vector<int64_t>{1, 2, 1, 3, 2}));
    EXPECT_EQ(sizes_of(kB), std::vector<int64_t>{2});
    EXPECT_TRUE(sizes_of(int64_t{3}).empty());
    EXPECT_TRUE(sizes_of(at::Tensor()).empty()) << "an undefined tensor is none";
    EXPECT_TRUE(tensors_in(nested())[0].is_same(kA)) << "the objects themselves";
}

TEST(IValueTensors, AreReplacedInACopyOfTheSameTypes) {
    const c10::IValue original = nested();
    const c10::IValue copy = map_tensors(original, [](const at::Tensor& tensor) { return tensor.clone(); });
    EXPECT_EQ(sizes_of(copy), sizes_of(original));
    EXPECT_EQ(*copy.type(), *original.type());
    for (const at::Tensor& tensor : tensors_in(copy)) EXPECT_FALSE(tensor.is_same(kA) || tensor.is_same(kB));
    EXPECT_FALSE(copy.toTupleRef().elements()[1].toList().is(original.toTupleRef().elements()[1].toList()))
        << "containers are made anew";
    EXPECT_TRUE(tensors_in(original)[0].is_same(kA));
}

TEST(IValueTensors, EmptyContainersKeepTheirElementTypes) {
    const c10::IValue list = c10::List<at::Tensor>();
    EXPECT_EQ(*map_tensors(list, [](const at::Tensor& tensor) { return tensor; }).type(), *list.type());
    const c10::IValue dict = c10::Dict<int64_t, at::Tensor>();
    EXPECT_EQ(*map_tensors(dict, [](const at::Tensor& tensor) { return tensor; }).type(), *dict.type());
}

TEST(IValueTensors, NamedTuplesKeepTheirNames) {
    const auto type =
        c10::TupleType::createNamed(c10::QualifiedName("Pair"), std::vector<std::string>{"left", "right"},
                                    std::vector<c10::TypePtr>{c10::TensorType::get(), c10::IntType::get()});
    const c10::IValue named = c10::ivalue::Tuple::createNamed({kA, int64_t{1}}, type);
    const c10::IValue copy = map_tensors(named, [](const at::Tensor&) { return kB; });
    const auto copied = copy.type()->expect<c10::TupleType>();
    ASSERT_NE(copied->schema(), nullptr);
    EXPECT_EQ(copied->schema()->arguments()[0].name(), "left");
    EXPECT_TRUE(tensors_in(copy)[0].is_same(kB));
    const c10::IValue empty = c10::ivalue::Tuple::createNamed({at::Tensor(), int64_t{1}}, type);
    const c10::IValue mapped = map_tensors(empty, [](const at::Tensor&) { return kB; });
    EXPECT_NE(mapped.type()->expect<c10::TupleType>()->schema(), nullptr);
}

TEST(IValueTensors, TensorsThatAreNotThereStayWhereTheyAre) {
    const c10::IValue attention = c10::ivalue::Tuple::create({kA, at::Tensor()});  // without weights
    EXPECT_EQ(sizes_of(attention), std::vector<int64_t>{1});
    const c10::IValue copy = map_tensors(attention, [](const at::Tensor&) { return kB; });
    EXPECT_TRUE(copy.toTupleRef().elements()[0].toTensor().is_same(kB));
    EXPECT_FALSE(copy.toTupleRef().elements()[1].toTensor().defined());
}

}  // namespace
}  // namespace vpp
