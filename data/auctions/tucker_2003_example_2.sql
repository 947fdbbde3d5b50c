-- The final price of each item: its initial price and all increases of it.
-- Tucker et al. 2003, Example 2; a bid's price is read as an increase.
-- An item leaves the join when the bids on it are closed (bid.auction), a bid once its item has come (auction.id is
-- unique); both together close the item's group, and its price goes out.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT A.id, A.initialBid + SUM(B.price) AS finalPrice
FROM auction A JOIN bid B ON A.id = B.auction
GROUP BY A.id, A.initialBid;
