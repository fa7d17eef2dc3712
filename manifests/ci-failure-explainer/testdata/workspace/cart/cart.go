// Package cart adds up what a customer buys.
package cart

// Item is a line of a cart. Prices are in cents.
type Item struct {
	Name     string
	Price    int64
	Quantity int64
}

// Total is what the items cost, after a discount in percent.
func Total(items []Item, discount int64) int64 {
	var sum int64
	for _, i := range items {
		sum += i.Price * i.Quantity
	}
	return sum - sum/100*discount
}
