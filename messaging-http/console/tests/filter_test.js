import { filterOf, group, leaf, treeOf } from "../lib/filter.js";
import { equal } from "./check.js";

const IS_PRO = { attribute: "plan", op: "eq", value: "pro" };
const IS_OLD = { attribute: "age", op: "gt", value: 40 };

export function a_filter_comes_back_from_its_rows() {
  for (const filter of [
    { and: [IS_PRO, IS_OLD] },
    { or: [IS_PRO, { and: [IS_OLD, IS_PRO] }] },
    { not: { or: [IS_PRO, IS_OLD] } },
    { and: [{ not: { and: [IS_PRO, IS_OLD] } }, IS_OLD] },
  ]) equal(filterOf(treeOf(filter)).filter, filter);
}

export function a_single_condition_stands_in_a_group() {
  equal(filterOf(treeOf(IS_PRO)).filter, { and: [IS_PRO] });
  equal(filterOf(treeOf({})).filter, {});
  equal(filterOf(treeOf(null)).filter, {});
}

export function rows_that_are_left_out_take_empty_groups_with_them() {
  const row = leaf(IS_OLD);
  const tree = group("all", [leaf(IS_PRO), group("any", [row])]);
  equal(filterOf(tree, new Set([row.id])).filter, { and: [IS_PRO] });
}
