"""List of the mutants, with their files and the tests that must detect them."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One slip.

    Attributes
    ----------
    name : str
    file : str
        Path of the changed file in the package.
    old, new : str
        Text to be replaced, which occurs exactly once in the file, and its replacement.
    tests : tuple of str
        Files or node ids of the tests that must fail, the fastest first.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _in(file: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{file}.py::test_{name}" for name in names)


_COUNTS = _in("graph/test_graph", "training_counts_against_the_twin")
_WALK = _in("graph/test_graph", "counts_of_chosen_k_rise", "training_counts_against_the_twin")
_CELLS = ("tests/distributed/test_block_graph.py",)
_TIES = _in(
    "graph/test_ties", "keys_are_those_of_the_twin", "the_class_that_comes_first_does_not_win"
)
_QUERY = _in(
    "graph/test_query",
    "at_equal_distance_the_training_point_keeps_its_place",
    "query_against_the_twin",
)
_GROUPS = _in("graph/test_groups", "every_exact_search_gives_the_lists_of_a_sort")
_STATISTICS = ("tests/model/test_statistics.py",)
_PRIOR = ("tests/model/test_prior.py",)
_ELIMINATION = _in("model/test_elimination", "elimination_equals_enumeration")
_EXACT = _in("likelihood/test_exact", "value_is_that_of_the_reference")
_GIBBS = _in(
    "labels/test_gibbs", "two_classes_leave_the_law_invariant", "same_labels_as_the_reference"
)
_GIBBS_MANY = _in(
    "labels/test_gibbs", "three_classes_leave_the_law_invariant", "same_labels_as_the_reference"
)
_SW = _in("labels/test_swendsen_wang", "same_labels_as_the_twin")
_PERFECT = _in("labels/test_perfect_bonds", "a_hundred_draws_are_those_of_the_reference")
_SITES = _in(
    "paper/test_perfect_sampling",
    "further_back_is_the_same_draw",
    "same_labels_as_the_reference",
)
_PSEUDO = _in("likelihood/test_pseudo", "value_is_that_of_the_reference")
_PROPOSALS = _in("posterior/test_proposals", "compiled_proposals_agree_with_their_slow_twin")
_TUNING = _in("posterior/test_proposals", "tuning_is_constant_after_warmup_and_where_it_was_given")
_METROPOLIS = _in("posterior/test_metropolis", "three_classes_and_a_prior_with_a_gap",
                  "chains_agree_with_quadrature_on_an_enumerated_likelihood")  # fmt: skip
_CHAINS = ("tests/posterior/test_chains.py",)
_EXCHANGE = _in("posterior/test_exchange", "compiled_moves_are_those_of_the_twin")
_AUXILIARY = _in("posterior/test_auxiliary", "compiled_moves_are_those_of_the_twin")
_GRID = _in(
    "posterior/test_grid", "evidence_and_mean_are_plain_sums", "another_prior_moves_the_posterior"
)
_AVERAGES = _in("predictive/test_predictive", "probabilities_are_the_weighted_rule")
_INTERVALS = _in("predictive/test_predictive", "intervals_are_weighted_quantiles")
_LOO = _in(
    "predictive/test_leave_one_out", "it_is_the_reweighted_rule_on_the_graph_without_the_point"
)
_LOO_INTERVALS = _in(
    "predictive/test_leave_one_out", "intervals_are_quantiles_of_the_reweighted_nodes"
)
_DECISIONS = ("tests/predictive/test_decisions.py",)
_TABLE = _in("log_z/test_path_table", "ripley_agrees_with_the_exact_values")


def _slice(name: str) -> tuple[str, ...]:
    """Return the node id of the test of one invariance, which its mutant must fail."""
    return _in("campaigns/test_invariances", f"a_slice_holds[{name}]")


MUTANTS = (
    # graph
    Mutant("reverse neighbours dropped", "graph/neighbor_graph.py",
           "add_edges(row, labels, counts)", "add_edges(row[:0], labels, counts)", _COUNTS),
    Mutant("the farthest neighbour is not counted", "graph/neighbor_graph.py",
           "for row in neighbors[reached:k]:", "for row in neighbors[reached : k - 1]:", _COUNTS),
    Mutant("a walk over k counts ranks twice", "graph/neighbor_graph.py",
           "        reached = k\n", "        reached = k - 1\n", _WALK),
    Mutant("ties by row number", "graph/ties.py",
           "order = np.argsort(key_of_rows(rows)).astype(np.uint32)",
           "order = np.arange(len(rows), dtype=np.uint32)", _TIES),
    Mutant("a cell of other machines is searched for itself alone", "distributed/cells.py",
           "if (gap <= radii).any())", "if gap.max() == 0)", _CELLS),
    Mutant("edges of other cells are lost", "distributed/cells.py",
           "sources = np.concatenate([each.sources for each in sent])[order]",
           "sources = targets.copy()", _CELLS),
    Mutant("a new point enters a list at equal distance", "graph/search/brute.py",
           "if lists[i, middle] <= distances[h]:", "if lists[i, middle] < distances[h]:", _QUERY),
    Mutant("a new point's reverse neighbours one rank late", "graph/queries.py",
           "while e < end and ranks[e] <= k:", "while e < end and ranks[e] < k:", _QUERY),
    Mutant("Gower's distance without the range of the column", "graph/metrics.py",
           "row[i] += weight * (abs(x - column[i]) / spread)",
           "row[i] += weight * abs(x - column[i])", _in("graph/test_gower", "new_points_are_measured_by_the_training_ranges", "gower_is_its_twin_on_every_kind_of_table")),
    Mutant("Mahalanobis with the root of the variances left out", "graph/metrics.py",
           "return axes / scale[:, None] / np.sqrt(values)",
           "return axes / scale[:, None] / values", _in("graph/test_metrics", "mahalanobis_is_the_formula")),
    # model
    Mutant("S_k without the nearest neighbour", "model/boltzmann.py",
           "for rank in range(first, last):", "for rank in range(max(first, 1), last):",
           _STATISTICS),
    Mutant("class weights in reverse order", "model/boltzmann.py",
           "total += class_weight[g] * counts[g]",
           "total += class_weight[class_weight.size - 1 - g] * counts[g]", _STATISTICS),
    Mutant("beta not divided by k in the conditionals", "model/boltzmann.py",
           "np.exp(beta / k * (fields", "np.exp(beta * (fields",
           ("tests/model/test_conditionals.py",)),
    Mutant("class weights upside down", "model/frequencies.py",
           "return prior / (sizes / len(labels))", "return (sizes / len(labels)) / prior",
           ("tests/model/test_weights.py",)),
    Mutant("a common class weight is forgotten", "model/boltzmann.py",
           "return float(self.class_weight[0])", "return 1.0",
           ("tests/model/test_boltzmann.py",)),
    Mutant("a prior by k is not normalised over beta", "model/prior.py",
           "mass = values.sum() * self.beta_max", "mass = values.sum()", _PRIOR),
    Mutant("a prior on a grid is interpolated backwards", "model/prior.py",
           "density = self.values[row, column] * (1 - part) + self.values[row, column + 1] * part",
           "density = self.values[row, column] * part + self.values[row, column + 1] * (1 - part)",
           _PRIOR),
    Mutant("K is the largest class", "model/prior.py",
           "wanted = max(int(sizes.min()),", "wanted = max(int(sizes.max()),", _PRIOR),
    Mutant("log Z without the edges of the heaviest class", "model/elimination.py",
           "log_z += strengths * heaviest * multiplicity[e]",
           "log_z += strengths * multiplicity[e]", _ELIMINATION),
    # labels
    Mutant("bonds at the rate beta", "labels/swendsen_wang.py",
           "return beta / np.float64(k)", "return beta", _SW),
    Mutant("bonds between different labels", "labels/swendsen_wang.py",
           "        keep = labels[i] == labels[j]\n", "        keep = i != j\n", _SW),
    Mutant("open probability to first order", "labels/swendsen_wang.py",
           "return -math.expm1(-strength)", "return strength / (1.0 + 0.5 * strength)",
           _in("labels/test_swendsen_wang_invariance", "the_law_is_invariant")),
    Mutant("colours of clusters whatever their bonds", "labels/swendsen_wang.py",
           "probabilities[g] = bonds[i] * log_weights[g]", "probabilities[g] = 0.0", _SW),
    Mutant("Gibbs forgets one reverse neighbour", "labels/gibbs.py",
           "np.uint32(k) + in_degree[k - 1])", "np.uint32(k) + in_degree[k - 1] // 2)", _GIBBS),
    Mutant("Gibbs of many classes forgets who moved", "labels/gibbs.py",
           "slots[at + old] -= np.uint32(1)", "slots[at + old] -= np.uint32(0)",
           _GIBBS_MANY),
    Mutant("Gibbs uses the numbers of one sweep for all", "labels/gibbs.py",
           "edges, sums, stream)\n            sweep += _ONE\n", "edges, sums, stream)\n",
           _GIBBS_MANY),
    Mutant("fresh numbers in coupling from the past", "paper/perfect_sampling.py",
           "stream | np.uint64(back)", "stream | np.uint64(n_sweeps - back + 1)", _SITES),
    Mutant("the first past that is tried is taken", "paper/perfect_sampling.py",
           "return np.count_nonzero(lower != upper)", "return 0", _SITES),
    Mutant("a bond that is sure with one class too few", "labels/perfect.py",
           "return 1.0 / (p + (1.0 - p) * n_classes)",
           "return 1.0 / (p + (1.0 - p) * (n_classes - 1))", _PERFECT),
    # groups
    Mutant("relatives are neighbours in the KD-tree", "graph/search/kd_tree.py",
           "groups[first + j] == groups[own + q]", "j == q and at == np.uint64(b)", _GROUPS),
    Mutant("relatives are neighbours in measured lists", "graph/search/brute.py",
           "ranked[groups == own[start:stop, None]] = np.inf",
           "ranked[order == np.arange(start, stop)[:, None]] = np.inf", _GROUPS),
    Mutant("one label of a group is left out", "predictive/averages.py",
           "np.add.reduceat(log_factors, blocks[:-1] - blocks[0], axis=1)",
           "log_factors[:, blocks[:-1] - blocks[0]]",
           _in("predictive/test_leave_one_out", "a_group_is_left_out_exactly_for_the_coherent_model")),
    Mutant("groups of one row change what is left out", "_utils/checks.py",
           "return None if len(seen) == len(codes) else codes", "return codes",
           _in("graph/test_groups", "groups_of_one_point_are_none")),
    Mutant("folds of the pool divide groups", "pooled/views.py",
           "return folds[groups]", "return rng.permutation(folds[groups])",
           _in("test_groups", "folds_are_stratified_whole_groups",
               "with_labels_of_whole_groups_permuted_nothing_is_learned")),
    Mutant("errors of residuals by rows", "sureness/residuals.py",
           "return np.bincount(index.ravel(), products.ravel())", "return products",
           _in("sureness/test_residuals", "columns_are_summed_as_pair_by_pair")),
    # likelihood
    Mutant("the pseudo-likelihood of forward neighbours", "likelihood/conditionals.py",
           'direction = "both"', 'direction = "forward"', _in("likelihood/test_pseudo", "ripley_maximum")),
    Mutant("Holmes and Adams with reverse neighbours", "likelihood/conditionals.py",
           'direction = "forward"', 'direction = "both"',
           ("tests/likelihood/test_holmes_adams.py",)),
    Mutant("the winner left out of the sum over classes", "likelihood/conditionals.py",
           "value += multiplicity[m] * math.log1p(others)",
           "value += multiplicity[m] * math.log(others)", _PSEUDO),
    Mutant("points of equal counts taken once", "likelihood/deficits.py",
           "multiplicity[number - one] += np.uint32(1)", "multiplicity[number - one] += np.uint32(0)",
           _PSEUDO),
    Mutant("the shortfall weighed by the winner's class", "likelihood/deficits.py",
           "shortfall += best - weights[labels[i]] * counts[i, labels[i]]",
           "shortfall += best - weights[leader] * counts[i, labels[i]]", _PSEUDO),
    Mutant("beta not divided by k in the exact likelihood", "likelihood/coherent.py",
           "return betas / k * self.agreement", "return betas * self.agreement", _EXACT),
    Mutant("S of the next k", "likelihood/coherent.py",
           "self.agreement[k - 1]", "self.agreement[k % self.k_max]", _EXACT),
    Mutant("resampled errors too small by .7", "log_z/records.py",
           "return (counts - 1) / m * np.sqrt(m / max(m - 3, 1))",
           "return 0.7 * (counts - 1) / m * np.sqrt(m / max(m - 3, 1))",
           ("tests/log_z/test_records.py",)),
    Mutant("reweighting to another k with the sign turned", "log_z/estimate.py",
           "return log_z[:, 1:] - log_z[:, :1]", "return log_z[:, :1] - log_z[:, 1:]",
           ("tests/log_z/test_records.py",)),
    Mutant("an unknown autocorrelation time becomes 1", "log_z/records.py",
           'return float("nan")\n        return self.thin', 'return 1.0\n        return self.thin',
           _in("log_z/test_records", "the_autocorrelation_time_of_equal_records_is_known_only_where_all_edges_agree")),
    Mutant("steps along a path too short", "log_z/estimate.py",
           "log_z.append(log_z[-1][:, -1:] + values)",
           "log_z.append(log_z[-1][:, -1:] + 0.98 * values)", _TABLE),
    Mutant("the correction at the far end with the sign turned", "log_z/along_beta.py",
           "share = -(of_missing @ noise)", "share = (of_missing @ noise)",
           _in("log_z/test_path_table", "both_ends_of_the_path_count")),
    # posterior
    Mutant("acceptance without the proposal ratio of k", "posterior/mcmc/proposals.py",
           "return to_k, _log_k_hastings(k, to_k, r, walk.k_max)", "return to_k, 0.0", _PROPOSALS),
    Mutant("acceptance without the Jacobian", "posterior/mcmc/proposals.py",
           "log_correction = log_ratio + _log_jacobian(to_theta) - _log_jacobian(theta)",
           "log_correction = log_ratio", _PROPOSALS),
    Mutant("k proposed from one value too few", "posterior/mcmc/proposals.py",
           "return min(k + r, k_max) - max(k - r, 1)",
           "return min(k + r, k_max) - max(k - r, 1) - 1", _PROPOSALS),
    Mutant("tuning goes on after warm-up", "posterior/mcmc/proposals.py",
           "if iteration >= walk.n_warmup or not walk.adapts_slope:",
           "if not walk.adapts_slope:", _TUNING),
    Mutant("the prior dropped from the chain", "posterior/mcmc/metropolis.py",
           "return float(log_prior + self.likelihood.log_density(beta, k))",
           "return float(self.likelihood.log_density(beta, k))", _METROPOLIS),
    Mutant("k from its conditional, one too low", "posterior/mcmc/metropolis.py",
           "return at + 1, float(log_densities[at])",
           "return max(at, 1), float(log_densities[at])", _METROPOLIS),
    Mutant("one seed for all chains", "posterior/mcmc/runner.py",
           "keys = spawn_keys(seeds, n_chains)",
           "keys = np.repeat(spawn_keys(seeds, 1), n_chains)", _CHAINS),
    Mutant("warm-up among the draws", "posterior/mcmc/runner.py",
           "return lay_out_draws(chains.draws, sampler.n_warmup, labels",
           "return lay_out_draws(chains.draws, 0, labels", _CHAINS),
    Mutant("exchange without the labels drawn", "posterior/mcmc/exchange.py",
           "gain = bond_rate(to.beta, to.k) * (observed[to.k - 1] - to_drawn)",
           "gain = bond_rate(to.beta, to.k) * (observed[to.k - 1] - drawn)", _EXCHANGE),
    Mutant("the auxiliary ratio without the plug-in", "posterior/mcmc/auxiliary.py",
           "return gain - loss + bond_rate(plug_in.beta, plug_in.k) * (drawn_at_plug_in - at_plug_in)",
           "return gain - loss", _AUXILIARY),
    Mutant("auxiliary labels kept when the move is made", "posterior/mcmc/auxiliary.py",
           "            labels[:] = sampler.labels\n", "            labels[:] = labels\n",
           _AUXILIARY),
    Mutant("the density of a cell without its width", "posterior/quadrature/grid.py",
           "np.log(self.weights / np.maximum(np.diff(self.cells, axis=1), 1e-300))",
           "np.log(self.weights)",
           _in("posterior/test_grid", "the_log_posterior_of_draws_is_the_density")),
    Mutant("all nodes of an integral weigh the same", "model/integration.py",
           "return nodes, log_density(nodes) + np.log(weights)",
           "return nodes, log_density(nodes) + np.log(weights.mean())", _GRID),
    Mutant("the grid without the prior", "posterior/quadrature/grid.py",
           "np.full(len(beta), k)) + prior.log_density(beta, k)", "np.full(len(beta), k))", _GRID),
    Mutant("panels that never come near a spike", "model/integration.py",
           "rough | _beside(edges, rough)", "rough",
           _in("model/test_integration", "a_bell_is_found_wherever_it_stands")),
    Mutant("the discretisation error is forgotten", "posterior/quadrature/which_k.py",
           " - np.abs(error - error[best])", "", _in("posterior/test_ridge", "a_k_in_doubt_is_kept")),
    Mutant("the bound of log Z with p for its square", "posterior/quadrature/which_k.py",
           "weights[heaviest] * p**2", "weights[heaviest] * p",
           _in("posterior/test_narrow_priors", "the_bound_without_simulation_is_one_under_a_narrow_prior")),
    Mutant("a search that walks away from the mode", "posterior/quadrature/log_posterior.py",
           "newton = (self.observed[k - 1] / k - mean) / variance",
           "newton = (mean - self.observed[k - 1] / k) / variance",
           _in("posterior/test_ridge", "a_step_leads_to_the_top")),
    Mutant("a long tail is left alone", "posterior/quadrature/mesh.py",
           "return float(max(error.max(), of_mean) / tolerance)",
           "return float(error.max() / tolerance)",
           _in("posterior/test_ridge", "a_long_tail_that_moves_the_mean_is_worked_on")),
    Mutant("exact log Z ties the others with the sign turned", "posterior/quadrature/mesh.py",
           "constant = exact[best][node] - values[best][:, node]",
           "constant = values[best][:, node] - exact[best][node]",
           _in("posterior/test_exact_ks", "simulated_k_are_tied_to_exact_ones")),
    Mutant("log Z with the sign turned", "posterior/quadrature/log_posterior.py",
           "self.target.log_weight(self.k)(beta) - self.log_z(beta, rows)",
           "self.target.log_weight(self.k)(beta) + self.log_z(beta, rows)",
           _in("posterior/test_grid", "four_classes_with_the_mass_on_small_k")),
    Mutant("chains that are worth little count as much as others", "log_z/mbar.py",
           "        terms *= n_effective\n", "", _in("log_z/test_mbar", "newton_finds_what_the_formula_gives_back")),
    Mutant("errors of all draws without those of the chains' log Z", "log_z/mbar.py",
           "of_all = f + change + follows * n_effective @ second.T", "of_all = f + change",
           _in("log_z/test_mbar", "log_z_is_exact_within_errors_that_mean_what_they_say")),
    Mutant("records that are not shifted where errors say so", "log_z/mbar.py",
           "move(away.mean(axis=(0, 1))[None], at)", "move(0 * away.mean(axis=(0, 1))[None], at)",
           _in("log_z/test_mbar", "two_settings_give_bennetts_ratio")),
    Mutant("a k between two paths without the mean of the weights", "log_z/mbar.py",
           "f, change, second = f + np.log(totals), ", "f, change, second = f, ",
           _in("log_z/test_path_table", "scores_between_paths_have_unit_spread")),
    Mutant("a step from k to k with its correction turned", "log_z/estimate.py",
           "return (means[0] + means[1]) / 2 + correction", "return (means[0] + means[1]) / 2 - correction",
           _in("posterior/test_ridge", "a_step_from_k_to_k_is_the_trapezium_rule_with_end_correction")),
    Mutant("the far end of a path with the sign turned", "log_z/estimate.py",
           "return weight - np.log(np.maximum(", "return weight + np.log(np.maximum(",
           ("tests/log_z/test_ends.py",)),
    Mutant("log-sum-exp without the maximum", "posterior/quadrature/grid.py",
           "return weights / totals[:, None, None], top + np.log(totals)",
           "return weights / totals[:, None, None], np.log(totals)", _GRID),
    # predictive
    Mutant("beta not divided by k in prediction", "predictive/nodes.py",
           "return self.beta / self.k", "return self.beta / self.k.max()",
           _AVERAGES),
    Mutant("probabilities squared before they are averaged", "predictive/averages.py",
           "weighted.sum(axis=0), (", "(weighted * first).sum(axis=0), (",
           _AVERAGES),
    Mutant("softmax divided by more than the sum", "predictive/averages.py",
           "probabilities /= totals[..., None]", "probabilities /= np.maximum(totals[..., None], 1.01)", _AVERAGES),
    Mutant("leave-one-out that has seen the label", "predictive/averages.py",
           "self.weights[:, None] * np.exp(log_factors - log_factors.max(axis=0))",
           "self.weights[:, None] * np.exp(0 * log_factors)", _LOO),
    Mutant("intervals of training points that have seen the label",
           "predictive/averages.py",
           "log_factors = np.log(totals) + np.take_along_axis(deficits, own, axis=2)[..., 0]",
           "log_factors = -np.log(totals) - np.take_along_axis(deficits, own, axis=2)[..., 0]",
           _LOO_INTERVALS),
    Mutant("both tails in each end of the interval", "predictive/averages.py",
           "tail = max((1.0 - level) / 2 - 1e-12,", "tail = max((1.0 - level) - 1e-12,", _INTERVALS),
    Mutant("losses with truth and decision swapped", "predictive/decisions.py",
           "expected = values @ table.T", "expected = values @ table", _DECISIONS),
    Mutant("zones by the lower ends alone", "predictive/decisions.py",
           "return np.where(lower.max(axis=1) > others.max(axis=1), best, -1)",
           "return np.where(lower.max(axis=1) > 0, best, -1)", _DECISIONS),
    Mutant("joint draws with k as in training", "predictive/joint.py",
           "return np.rint(np.asarray(k) * (total / n)).astype(np.int64)",
           "return np.rint(np.asarray(k) * 1.0).astype(np.int64)",
           _in("predictive/test_joint", "law_of_a_small_batch_is_the_exact_one", "counts_of_half_of_ripley_are_the_exact_ones")),
    Mutant("counts whose mean no residual corrects", "sureness/counts.py",
           "mean = probabilities.sum(axis=0) + m * (share * residuals).sum(axis=0)",
           "mean = probabilities.sum(axis=0)",
           _in("predictive/test_joint", "sums_are_corrected_by_the_mean_residual")),
    Mutant("a conditional logit without bounds", "sureness/conditional_logit.py",
           "is_bounded = np.arange(mean.size) >= n_alpha", "is_bounded = np.zeros(mean.size, bool)",
           _in("sureness/test_conditional_logit", "it_is_the_maximum_that_a_general_optimiser_finds")),
    Mutant("pairs not divided by their correlation", "sureness/residuals.py",
           "likeness = np.clip(alike / max(signal, 1e-300), _MIN_LIKENESS, 1.0)", "likeness = 1.0",
           _in("sureness/test_residuals", "pairs_that_stand_apart_are_divided_by_how_alike_they_are")),
    Mutant("a barely significant column taken at face value", "sureness/residuals.py",
           "sums[at] += total / scale * (1.0 - (least / z) ** 2)", "sums[at] += total / scale",
           _in("sureness/test_residuals", "a_barely_significant_column_hardly_counts", "columns_are_summed_as_pair_by_pair")),
    Mutant("columns of noise named by a normal quantile", "sureness/residuals.py",
           "shape = 4.0 * n_pairs", "shape = 1e6 * n_pairs",
           _in("sureness/test_column_pairs", "columns_of_noise_are_named_in_at_most_one_table_of_twenty")),
    Mutant("intervals without the columns", "classifier.py",
           "columns=rows.columns,", "columns=None,",
           _in("sureness/test_column_pairs", "a_step_in_one_of_eight_columns_is_named_and_covered")),
    # the pool
    Mutant("a left-out row takes its part of its class along", "pooled/member.py",
           "lost = weight[:, None] * scores - weights[:, None] * score", "lost = others * scores",
           _in("pooled/test_rows", "of_noise_left_out_scores_say_what_new_rows_show")),
    Mutant("class_prior relative to the counts of the rows", "pooled/classifier.py",
           "return ratios * counted / order.by_class(sample.class_shares)", "return ratios",
           _in("pooled/test_tables", "class_prior_of_the_weighted_frequencies_changes_nothing")),
    Mutant("the bandwidth of new rows one k too short", "pooled/features.py",
           "reach[part] = far[:, self.k_values - 1]", "reach[part] = far[:, self.k_values - 2]",
           _in("pooled/test_recipe", "features_of_lists_are_those_of_all_distances")),
    Mutant("the pool follows the order of the rows", "pooled/order.py",
           "return Order(rows[order],", "return Order(rows,",
           _in("pooled/test_rows", "another_order_of_the_table_gives_the_same_answers")),
    Mutant("a kernel that is not centred at new rows", "pooled/kernels.py",
           "offset = (shares @ means - means) @ axes", "offset = 0.0 * means @ axes",
           _in("pooled/test_smooth", "it_is_kernel_logistic_regression")),
    Mutant("an intercept under the ridge", "pooled/ridge.py",
           "(c * sample.weights.sum())), 0.0)", "(c * sample.weights.sum())), 1.0)",
           _in("pooled/test_smooth", "it_is_kernel_logistic_regression")),
    Mutant("members that know the rows that they are judged on", "pooled/views.py",
           "sample.take(sample.know_without(folds == fold))", "sample.take(folds >= 0)",
           _in("pooled/test_own_members", "labels_that_are_not_known_are_not_leaked")),
    Mutant("rows of weight 0 have a part in the fit", "pooled/order.py",
           "rows = np.flatnonzero(weights > 0)", "rows = np.flatnonzero(weights >= 0)",
           _in("pooled/test_rows", "a_row_of_weight_0_is_left_out")),
    # criticism
    Mutant("a prior that is 0 twice has no ratio", "posterior/quadrature/grid.py",
           "return np.exp(np.where(np.isneginf(above), -np.inf, above - below))",
           "return np.exp(above - below)",
           _in("classifier/test_reweight", "a_prior_that_is_zero_at_some_k_is_its_own")),
    Mutant("other draws under the prior of the fit", "classifier.py",
           "target, schedule, self._seeds)", "target, schedule, 1)",
           _in("classifier/test_reweight", "the_prior_of_the_fit_gives_the_fit")),
    Mutant("labels drawn at the posterior mean", "classifier.py",
           'beta, k = draws["beta"].ravel()[chosen], draws["k"].ravel()[chosen]',
           'beta, k = np.full(n_draws, draws["beta"].mean()), np.full(n_draws, int(np.median(draws["k"])))',
           _in("test_criticism", "predictive_draws_have_the_exact_distribution")),
    Mutant("evidence compared across prior ranges", "criticism.py",
           "if one.beta_max != other.beta_max:", "if one.beta_max < 0:",
           _in("test_criticism", "what_cannot_be_compared_says_which_argument")),
    Mutant("another prior without its normalisation", "posterior/quadrature/grid.py",
           "log_evidence = self.log_evidence + float(np.log(total))",
           "log_evidence = self.log_evidence + float(np.log(total * new.k_max * new.beta_max))",
           _in("test_criticism", "reweighted_is_enumerated_and_refitted")),
    Mutant("a cell that another range cuts counts whole", "posterior/quadrature/grid.py",
           "ratio = np.clip((end - cells[:, :-1]) / np.diff(cells, axis=1), 0.0, 1.0)",
           "ratio = np.ones(betas.shape)",
           _in("test_criticism", "reweighted_is_enumerated_and_refitted")),
    # report
    Mutant("an interval of k with 5 % on either side", "model_file/adapters.py",
           "np.quantile(k, [0.025, 0.975]", "np.quantile(k, [0.05, 0.95]",
           _in("report/test_analysis", "the_interval_of_k_has_a_fortieth_of_the_posterior_on_either_side")),
    # invariances, each by its slice
    Mutant("invariance: duplicate rows are forgotten by a saved classifier", "classifier.py",
           "replace(self._interval_model, copies=copies)",
           "replace(self._interval_model, copies=None)", _slice("way of calling")),
    Mutant("invariance: dates of a file are no dates", "tables/kinds.py",
           'in ("date", "datetime"):\n        return Date', 'in ("date", "datetime"):\n        return Other',
           _slice("command")),
    Mutant("invariance: one more row in each class", "model/frequencies.py",
           "return prior / (sizes / len(labels))",
           "return prior / ((sizes + 1) / (len(labels) + len(names)))", _slice("own prior")),
    Mutant("invariance: no weight above 2", "pooled/classifier.py",
           "(weights / weights.max()).astype(np.float32).astype(np.float64)",
           "np.minimum(weights, 2.0)", _slice("scale of weights")),
    Mutant("invariance: the farthest of a batch is unfamiliar", "sureness/intervals.py",
           "is_far = raw.distances > scale.sorted_distances[-1]",
           "is_far = raw.distances >= raw.distances.max()", _slice("order of new rows")),
    Mutant("invariance: the scale of the first half of the rows", "sureness/calibration.py",
           "values = np.sort(np.asarray(distances, dtype=np.float64))",
           "values = np.sort(np.asarray(distances, dtype=np.float64)[: len(distances) // 2 + 1])",
           _slice("order")),
    Mutant("invariance: whitening without the units", "graph/metrics.py",
           "return axes / scale[:, None] / np.sqrt(values)", "return axes / np.sqrt(values)",
           _slice("units")),
    Mutant("invariance: reverse neighbours of given distances are nearer", "graph/search/brute.py",
           "if not is_sparse(rows):\n            return super().query(rows, k, radii, n_jobs)",
           "if not is_sparse(rows):\n            return super().query(rows, k, 0.9 * radii, n_jobs)",
           _slice("precomputed")),
    Mutant("invariance: a new file has a decimal mark of its own", "tables/kinds.py",
           'comma = self.decimal == "," or (', "comma = (", _slice("format")),
    # With few values of k, intervals of 90 and 95 % are often equal. tests/report/test_analysis has
    # a case in which they differ.
    Mutant("invariance: an interval of k that holds half of the posterior", "model_file/adapters.py",
           "np.quantile(k, [0.025, 0.975]", "np.quantile(k, [0.25, 0.75]", _slice("report")),
    Mutant("invariance: metropolis without the Jacobian", "posterior/mcmc/proposals.py",
           "log_ratio + _log_jacobian(to_theta) - _log_jacobian(theta)",
           "log_ratio", _slice("routes")),
    Mutant("invariance: no warning at the ends of the prior", "posterior/routes.py",
           '*_describe_ends(fitted, target)]', "]",
           _slice("prior range")),
    Mutant("invariance: a left-out row takes its part of its class along", "pooled/member.py",
           "lost = weight[:, None] * scores - weights[:, None] * score", "lost = others * scores",
           _in("campaigns/test_invariances", "nothing_to_learn_from_few_tables[pooled-16]")),
    Mutant("invariance: relatives are neighbours", "graph/search/brute.py",
           "ranked[groups == own[start:stop, None]] = np.inf",
           "ranked[order == np.arange(start, stop)[:, None]] = np.inf", _slice("groups")),
    Mutant("invariance: counts below the least are accepted", "_utils/checks.py",
           "if low <= count and (high is None or count <= high):",
           "if high is None or count <= high:", _slice("refusal")),
    # tables
    Mutant("a new file is read by the point though training has commas", "tables/kinds.py",
           'comma = self.decimal == "," or (', "comma = (",
           _in("tables/test_formats", "the_thousands_of_training_are_those_of_a_new_file")),
    Mutant("a new file has an order of day and month of its own", "tables/kinds.py",
           'self.order or _find_order(column.dropna()) or "year"',
           '_find_order(column.dropna()) or "year"',
           _in("tables/test_formats", "the_order_of_day_and_month_is_that_of_training")),
    Mutant("what is missing is compared as text", "tables/table.py",
           "for name in frame if len(values) else ():", "for name in ():",
           _in("tables/test_formats", "a_number_for_missing_values_stands_for_its_value")),
)  # fmt: skip
